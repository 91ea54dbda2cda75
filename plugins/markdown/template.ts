import { InvalidInput } from "../../platform/errors.ts";

/**
 * Returns the template with `{{name}}` replaced by `variables.name`. There is no other syntax, unknown names stay, and
 * values are not expanded again. Values come from other people, so they are escaped to plain text (see `plain`).
 *
 * @throws InvalidInput if the result would be longer than `longest`
 */
export function fillTemplate(
  text: string,
  variables: Readonly<Record<string, string>>,
  longest: number,
): string {
  const values = new Map(Object.entries(variables).map(([name, value]) => [name, plain(value)]));
  let length = 0;
  // The text between the variables, with their names at odd indexes.
  const parts = text.split(/\{\{ *([A-Za-z_][A-Za-z0-9_]{0,99}) *\}\}/);
  const filled = parts.map((part, at) => {
    const words = at % 2 === 0 ? part : (values.get(part) ?? `{{${part}}}`);
    length += words.length;
    // Checked before joining: a long value in thousands of places would fill the memory.
    if (length > longest) throw tooLong(longest);
    return words;
  });
  return filled.join("");
}

function tooLong(longest: number): InvalidInput {
  return new InvalidInput("text", `The text is longer than ${longest} characters`);
}

/** An address without Markdown syntax. It is not escaped, because escaping would break the link. */
const plainLink = /^https?:\/\/[A-Za-z0-9.:[\]/-]+$/;

/**
 * Escapes a value so that Markdown shows it unchanged, without a list, task, heading, link, code or HTML, wherever it is
 * inserted. Characters with a meaning anywhere get a backslash; those with a meaning at the start of a line get one there.
 */
function plain(value: string): string {
  if (plainLink.test(value)) return value;
  return value
    .replace(/\r\n?|[\v\f\u0085\u2028\u2029]/g, "\n")
    .split("\n")
    .map((line) =>
      line
        .trim()
        .replace(/[\\`*_[\]<>&|~$]/g, "\\$&")
        .replace(/^[#+=:-]/, "\\$&")
        .replace(/^(\d+)([.)])/, "$1\\$2")
        // Many renderers turn these addresses into links.
        .replace(/:\/\//g, "\\://")
        .replace(/\bwww\./gi, "www\\."),
    )
    .join("\n");
}
