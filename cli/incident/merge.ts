/** A text with the changes of two people. */
export interface Merged {
  text: string;
  /** Places where both changed the same lines. The text has both versions there, between markers. */
  conflicts: number;
  /** The same with only your version of these places. */
  preferred: string;
}

/** The lines around the two versions of a place that both changed, as git writes them. */
const markers = { yours: "<<<<<<< yours", middle: "=======", theirs: ">>>>>>> theirs" };

/** Changed lines up to which single places are found: the cost grows with their square (about 1 s). */
const mostChanges = 1500;

/** Some lines of the base, which a text has replaced: those from `start` to before `end`. */
interface Change {
  start: number;
  end: number;
  lines: readonly string[];
}

/**
 * Merges two texts that were both made from `base`, line by line. Changes of neighbouring lines conflict, as in git. The
 * white space at the end of the texts does not count, and that of `yours` stays.
 */
export async function mergeTexts(base: string, theirs: string, yours: string): Promise<Merged> {
  const lines = linesOf(base);
  const ours = await changesOf(lines, linesOf(yours));
  const others = await changesOf(lines, linesOf(theirs));
  const merged: string[] = [];
  const preferred: string[] = [];
  const add = (both: readonly string[], mine = both) => {
    merged.push(...both);
    preferred.push(...mine);
  };
  let conflicts = 0;
  let at = 0;
  while (ours.length > 0 || others.length > 0) {
    const start = Math.min(ours[0]?.start ?? Infinity, others[0]?.start ?? Infinity);
    const place = { start, end: start, ours: [] as Change[], others: [] as Change[] };
    while (take(ours, place, place.ours) || take(others, place, place.others));
    add(lines.slice(at, start));
    at = place.end;
    const mine = changed(lines, place, place.ours);
    const other = changed(lines, place, place.others);
    if (place.others.length === 0 || isSame(mine, other)) add(mine);
    else if (place.ours.length === 0) add(other);
    else {
      conflicts += 1;
      add(marked(mine, other), mine);
    }
  }
  add(lines.slice(at));
  const [end = ""] = /\s*$/.exec(yours)!;
  // A marker is a whole line.
  const text = merged.join("\n") + (end || (conflicts > 0 ? "\n" : ""));
  return { text, conflicts, preferred: preferred.join("\n") + end };
}

/** The number of the first line that is a marker of a conflict; undefined if there is none. */
export function markerLine(text: string): number | undefined {
  const at = text.split("\n").findIndex((line) => [markers.yours, markers.theirs].includes(line.trimEnd()));
  return at < 0 ? undefined : at + 1;
}

const linesOf = (text: string) => text.replace(/\r\n?/g, "\n").trimEnd().split("\n");

const isSame = (a: readonly string[], b: readonly string[]) =>
  a.length === b.length && a.every((line, at) => line === b[at]);

async function changesOf(base: readonly string[], text: readonly string[]): Promise<Change[]> {
  const { diffArrays } = await import("diff");
  const parts = diffArrays([...base], [...text], { maxEditLength: mostChanges });
  if (!parts) return [wholeChange(base, text)];
  const changes: Change[] = [];
  let at = 0;
  let isJoined = false;
  for (const { added, removed, value } of parts) {
    if (!added && !removed) {
      at += value.length;
      isJoined = false;
      continue;
    }
    const last = isJoined ? changes.at(-1)! : { start: at, end: at, lines: [] };
    if (!isJoined) changes.push(last);
    isJoined = true;
    if (added) last.lines = [...last.lines, ...value];
    else at = last.end = at + value.length;
  }
  return changes;
}

/** One change from the first to the last line that differs. */
function wholeChange(base: readonly string[], text: readonly string[]): Change {
  const start = sameStart(base, text);
  const end = sameStart(base.slice(start).toReversed(), text.slice(start).toReversed());
  return { start, end: base.length - end, lines: text.slice(start, text.length - end) };
}

function sameStart(a: readonly string[], b: readonly string[]): number {
  const at = a.findIndex((line, at) => line !== b[at]);
  return at < 0 ? a.length : at;
}

/** Moves the next change to the place if it overlaps or touches it. */
function take(changes: Change[], place: { end: number }, taken: Change[]): boolean {
  const [next] = changes;
  if (!next || next.start > place.end) return false;
  taken.push(changes.shift()!);
  place.end = Math.max(place.end, next.end);
  return true;
}

/** The lines of the base in a place, with the changes of one side. */
function changed(
  base: readonly string[],
  { start, end }: { start: number; end: number },
  changes: readonly Change[],
): string[] {
  const lines: string[] = [];
  let at = start;
  for (const change of changes) {
    lines.push(...base.slice(at, change.start), ...change.lines);
    at = change.end;
  }
  return [...lines, ...base.slice(at, end)];
}

/** Both versions between markers, which leave out what is the same at the start and the end. */
function marked(mine: readonly string[], other: readonly string[]): string[] {
  const both = wholeChange(other, mine);
  return [
    ...other.slice(0, both.start),
    markers.yours,
    ...both.lines,
    markers.middle,
    ...other.slice(both.start, both.end),
    markers.theirs,
    ...other.slice(both.end),
  ];
}
