import type { Output } from "./io.ts";

/** A column of a table for people. */
export interface Column {
  header: string;
  /** May be cut, with an ellipsis, down to `least`, and further when no column is left to leave out. */
  flexible?: boolean;
  /** In columns of a terminal; 10 by default. */
  least?: number;
  /** Left out of a terminal that is too narrow; 1 first. */
  leaveOut?: number;
}

const gap = 2;
const narrowest = 10;

/** The columns of a terminal; undefined for a pipe or a file, whose lines have any length. */
export function widthOf({ isTTY, columns }: Output): number | undefined {
  return isTTY && columns ? columns : undefined;
}

/** Prints a table, at most as wide as the terminal. */
export function printTable(
  { stdout }: { stdout: Output },
  header: readonly (string | Column)[],
  rows: readonly (readonly string[])[],
): void {
  stdout.write(table(header, rows, widthOf(stdout)));
}

/**
 * Rows under a header, in columns as wide as they need to be; the last one is not padded. With `width`, the
 * columns of a terminal, no line is longer: columns without a value are left out, flexible ones are cut, then others are
 * left out.
 */
export function table(
  header: readonly (string | Column)[],
  rows: readonly (readonly string[])[],
  width?: number,
): string {
  let columns = header.map((one, at) => ({
    ...(typeof one === "string" ? { header: one } : one),
    at,
    isEmpty: rows.length > 0 && rows.every((row) => !row[at]),
  }));
  const all = [columns.map((column) => column.header), ...rows];
  let widths = all[0]!.map((_, at) => Math.max(...all.map((row) => Bun.stringWidth(row[at] ?? ""))));
  if (width !== undefined) ({ columns, widths } = fit(columns, widths, width));
  const line = (row: readonly string[]) => {
    const text = columns
      .map(({ at }) => padded(cut(row[at] ?? "", widths[at]!), widths[at]!))
      .join(" ".repeat(gap))
      .trimEnd();
    return width === undefined ? text : cut(text, width);
  };
  return `${all.map(line).join("\n")}\n`;
}

type Placed = Column & { at: number; isEmpty: boolean };

function fit(given: readonly Placed[], natural: readonly number[], width: number) {
  let widths = [...natural];
  let columns = [...given];
  const total = () => columns.reduce((sum, { at }) => sum + widths[at]! + gap, -gap);
  if (total() > width) columns = given.filter((column) => !column.isEmpty);
  for (;;) {
    widths = [...natural];
    const flexible = columns.filter((column) => column.flexible);
    const [next] = columns
      .filter((column) => column.leaveOut !== undefined)
      .sort((a, b) => a.leaveOut! - b.leaveOut!);
    const leastOf = ({ least = narrowest }: Placed) => (next === undefined ? 1 : least);
    while (total() > width) {
      const wide = flexible.filter((column) => widths[column.at]! > leastOf(column));
      if (wide.length === 0) break;
      // The widest first, so that the others keep what they have.
      const { at } = wide.reduce((widest, one) => (widths[one.at]! > widths[widest.at]! ? one : widest));
      widths[at]! -= 1;
    }
    if (total() <= width || next === undefined) return { columns, widths };
    columns = columns.filter((column) => column !== next);
  }
}

/** Cuts a text to this many columns of a terminal, with an ellipsis. */
export function cut(text: string, width: number): string {
  if (Bun.stringWidth(text) <= width) return text;
  let shown = "";
  let used = 0;
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    const wide = Bun.stringWidth(segment);
    if (used + wide > width - 1) break;
    shown += segment;
    used += wide;
  }
  return width < 1 ? "" : `${shown}…`;
}

/**
 * Breaks a line at spaces into lines of at most this many columns. A longer word stays whole, so that it can be copied: the
 * terminal wraps it.
 */
export function wrapped(line: string, width: number | undefined): string[] {
  if (width === undefined || Bun.stringWidth(line) <= width) return [line];
  const [, indent = "", text = ""] = /^(\s*)(.*)$/s.exec(line) ?? [];
  const lines = Bun.wrapAnsi(text, Math.max(1, width - indent.length)).split("\n");
  return lines.map((one) => indent + one);
}

function padded(text: string, width: number): string {
  return `${text}${" ".repeat(Math.max(0, width - Bun.stringWidth(text)))}`;
}
