import { jsonText, printable } from "../platform/text.ts";
import type { Io } from "./io.ts";

export { jsonText, printable };

export function printJson({ stdout }: Pick<Io, "stdout">, value: unknown): void {
  stdout.write(`${jsonText(value)}\n`);
}

/** `1 run`, `2 runs` */
export function counted(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? "" : "s"}`;
}

/** A foreign text of several lines, each safe for a terminal. */
export function printableLines(text: string): string[] {
  return text
    .replace(/\r\n?/g, "\n")
    .trimEnd()
    .split("\n")
    .map((line) => printable(line.replaceAll("\t", "    "), 20_000));
}

/** A word as a shell reads it, for a command line that people copy. */
export function shellWord(word: string): string {
  return /^[\w./:@%+=,-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
