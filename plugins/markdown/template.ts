import { InvalidInput } from "../../platform/errors.ts";

/**
 * The text of a template with `{{name}}` replaced by `variables.name`. Nothing else in it means anything, what has no
 * such variable stays, and what is put in is looked at no more. Values are other people's words, so they are made plain
 * text (see `plain`).
 *
 * @throws InvalidInput when it would be longer than `longest`
 */
export function fillTemplate(
  text: string,
  variables: Readonly<Record<string, string>>,
  longest: number,
): string {
  const values = new Map(Object.entries(variables).map(([name, value]) => [name, plain(value)]));
  let length = 0;
  // The text between the variables, and their names at the odd places.
  const parts = text.split(/\{\{ *([A-Za-z_][A-Za-z0-9_]{0,99}) *\}\}/);
  const filled = parts.map((part, at) => {
    const words = at % 2 === 0 ? part : (values.get(part) ?? `{{${part}}}`);
    length += words.length;
    // Before it is put together: a long value in thousands of places would fill the memory.
    if (length > longest) throw tooLong(longest);
    return words;
  });
  return filled.join("");
}

function tooLong(longest: number): InvalidInput {
  return new InvalidInput("text", `The text is longer than ${longest} characters`);
}

/** An address that holds nothing of Markdown's own. Escaped, nobody could open it. */
const plainLink = /^https?:\/\/[A-Za-z0-9.:[\]/-]+$/;

/**
 * A value that Markdown shows as it is: with no list, task, heading, link, code or HTML in it, wherever it is put. The
 * signs that mean something anywhere have a backslash; those that mean something where a line begins have one there.
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
        // Addresses that many a renderer makes links of.
        .replace(/:\/\//g, "\\://")
        .replace(/\bwww\./gi, "www\\."),
    )
    .join("\n");
}
