import { printable } from "../platform/text.ts";
import type { Io } from "./io.ts";

export { printable };

/**
 * JSON whose strings are safe for a terminal: control characters and bidirectional overrides, which `JSON.stringify` leaves
 * as they are, become escapes.
 */
export function jsonText(value: unknown, indent?: number): string {
  return JSON.stringify(value, undefined, indent).replace(
    /[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

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
