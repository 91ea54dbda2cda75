import { printable } from "../text.ts";

/** Lines on each side of a place that differs; the terminal must still show the error below them. */
const mostLines = 10;
/** Places that differ. */
const mostRuns = 6;
/** Characters of a line. */
const longestLine = 160;
/** Changed lines up to which single places are found: the cost grows with their square (about 0.3 s). */
const mostChanges = 600;

/**
 * Shows how two texts differ, bounded: `-` lines are only in theirs, `+` lines only in yours. Texts of one line are shown
 * one below the other.
 */
export async function difference(theirs: string, yours: string): Promise<string[]> {
  const [a, b] = [theirs, yours].map((text) => text.trimEnd()) as [string, string];
  if (!a.includes("\n") && !b.includes("\n")) {
    const from = sameStart(a, b);
    return [`  Theirs: ${cut(a, from)}`, `  Yours:  ${cut(b, from)}`];
  }
  const { structuredPatch } = await import("diff");
  const options = { context: 2, maxEditLength: mostChanges };
  const patch = structuredPatch("", "", `${a}\n`, `${b}\n`, "", "", options);
  const hunks = patch?.hunks ?? [oneHunk(a.split("\n"), b.split("\n"))];
  const runs = hunks.flatMap(({ oldStart, lines }) => [[`@@ line ${oldStart}`], ...runsOf(lines)]);
  const isChange = ([first = ""]: string[]) => /^[-+]/.test(first);
  const end = runs.filter(isChange)[mostRuns];
  const shown = end === undefined ? runs : runs.slice(0, runs.indexOf(end));
  const left = runs.slice(shown.length).filter(isChange).flat().length;
  return [
    "Theirs (-) and yours (+):",
    ...shown.flatMap((run, at) => runLines(run, shown[at + (run[0]!.startsWith("-") ? 1 : -1)] ?? [])),
    ...(left > 0 ? [`… ${left} more lines differ`] : []),
  ];
}

/** All lines from the first to the last that differ. */
function oneHunk(theirs: readonly string[], yours: readonly string[]) {
  const first = theirs.findIndex((line, at) => line !== yours[at]);
  const start = first < 0 ? theirs.length : first;
  let end = 0;
  while (end < Math.min(theirs.length, yours.length) - start && theirs.at(-1 - end) === yours.at(-1 - end))
    end += 1;
  const side = (mark: string, lines: readonly string[]) =>
    lines.slice(start, lines.length - end).map((line) => mark + line);
  return { oldStart: start + 1, lines: [...side("-", theirs), ...side("+", yours)] };
}

/** Groups the lines of a hunk that begin with the same character. */
function runsOf(lines: readonly string[]): string[][] {
  const runs: string[][] = [];
  for (const line of lines) {
    const run = runs.at(-1);
    if (run?.[0]?.[0] === line[0]) run!.push(line);
    else runs.push([line]);
  }
  return runs;
}

/** @param others the lines of the other side, which may differ only far from the start of the line */
function runLines(run: readonly string[], others: readonly string[]): string[] {
  const shown = run.slice(0, mostLines).map((line, at) => {
    const other = others[at] ?? "";
    const isPair = line[0] !== other[0] && /^[-+]/.test(line) && /^[-+]/.test(other);
    const text = line.slice(1);
    return line[0] === "@" ? line : `${line[0]}${cut(text, isPair ? sameStart(text, other.slice(1)) : 0)}`;
  });
  const left = run.length - shown.length;
  return left > 0 ? [...shown, `${run[0]![0]}… ${left} more lines`] : shown;
}

function sameStart(a: string, b: string): number {
  let at = 0;
  while (at < a.length && a[at] === b[at]) at += 1;
  return at;
}

/** A long line from a little before the place where it differs. */
function cut(line: string, from: number): string {
  const start = line.length > longestLine && from > 40 ? from - 30 : 0;
  const text = line.replaceAll("\t", "    ");
  return start > 0 ? `…${printable(line.slice(start), longestLine)}` : printable(text, longestLine);
}
