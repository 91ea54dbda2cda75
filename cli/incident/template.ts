import { InvalidInput } from "../../platform/errors.ts";

// What the editor shows: a comment about what it is for, then a heading for each field.

const opening = "<!-- svc: ";
const closing = "-->";

/** A comment at the start of a text; it is never sent. */
export function commentText(lines: readonly string[]): string {
  return `${opening}${lines.join("\n").replaceAll(closing, "-- >")}\n${closing}\n`;
}

/** A text without the comment of its template, wherever the user moved it. */
export function withoutComment(text: string): string {
  const start = text.indexOf(opening);
  if (start < 0) return text;
  const end = text.indexOf(closing, start);
  if (end < 0) return text;
  return text.slice(0, start) + text.slice(end + closing.length).replace(/^[ \t]*\n/, "");
}

/** `# Conditions`, an empty line to write in, `# Actions`, ... */
export function templateOf(
  comment: readonly string[],
  fields: readonly (readonly [string, string])[],
): string {
  const sections = fields.map(([name, text]) => `# ${name}\n\n${text.trimEnd()}${text.trim() ? "\n" : ""}`);
  return `${commentText(comment)}\n${sections.join("\n")}`;
}

/**
 * The texts under the headings, in their order. A later line that looks like an earlier heading belongs to the text.
 *
 * @throws InvalidInput if a heading is missing, or there is text before the first
 */
export function sectionsOf(text: string, names: readonly string[]): string[] {
  const lines = withoutComment(text).split("\n");
  const starts: number[] = [];
  for (const name of names) {
    const from = (starts.at(-1) ?? -1) + 1;
    const at = lines.findIndex((line, at) => at >= from && isHeading(line, name));
    if (at < 0) throw new InvalidInput("text", `the heading "# ${name}" is missing, or not in its place`);
    starts.push(at);
  }
  if (lines.slice(0, starts[0]).some((line) => line.trim() !== ""))
    throw new InvalidInput("text", `there is text before the heading "# ${names[0]}"`);
  return starts.map((start, at) => sectionText(lines.slice(start + 1, starts[at + 1]).join("\n")));
}

/** A text as it is read back from its section. */
export function sectionText(text: string): string {
  return text.replace(/\r\n?/g, "\n").replace(/^(?:[^\S\n]*\n)+|\s+$/g, "");
}

function isHeading(line: string, name: string): boolean {
  return line.trimEnd().toLowerCase() === `# ${name.toLowerCase()}`;
}
