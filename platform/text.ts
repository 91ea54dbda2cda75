import { InvalidInput } from "./errors.ts";

/** Characters (UTF-16) of what is called by it: a name, a title, a kind. */
export const nameLength = 500;
/** Characters of a text that people write into a form. */
export const descriptionLength = 20_000;
export const urlLength = 2_000;

/**
 * A text that PostgreSQL can keep: no NUL, no half of a character pair, at most `longest` characters.
 *
 * @throws InvalidInput naming `field`; the message never repeats the text
 */
export function parseText(field: string, text: string, longest: number): string {
  if (text.length > longest)
    throw new InvalidInput(field, `The field ${field} is longer than ${longest} characters`);
  if (text.includes("\0") || !text.isWellFormed())
    throw new InvalidInput(
      field,
      `The field ${field} contains an invalid character (NUL or an unpaired surrogate)`,
    );
  return text;
}

/** Whether there is more in it than space and what leaves no mark: joiners, fillers, soft hyphens. */
function isSeen(text: string): boolean {
  return /[^\p{Cc}\p{Z}\p{Default_Ignorable_Code_Point}]/u.test(text);
}

/**
 * Embeddings, overrides and isolates (Unicode, UAX #9, 2): a name stands in the middle of subjects and lines of ours, which
 * would read backwards behind it. Scripts that go from right to left need none of them.
 */
const turns = /[\u202a-\u202e\u2066-\u2069]/;

/** A text in one line, without the space around it, of which something is left. @throws InvalidInput */
export function parseName(field: string, text: string): string {
  const name = parseText(field, text, nameLength).trim();
  if (!isSeen(name)) throw new InvalidInput(field, `The field ${field} is empty`);
  if (/[\p{Cc}\p{Zl}\p{Zp}]/u.test(name))
    throw new InvalidInput(field, `The field ${field} must be a single line of text`);
  if (turns.test(name))
    throw new InvalidInput(
      field,
      `The field ${field} has a character that turns the direction of what follows`,
    );
  return name;
}

/** A text of as many lines as its writer likes, of which something is left. @throws InvalidInput */
export function parseProse(field: string, text: string): string {
  const prose = parseText(field, text, descriptionLength);
  if (!isSeen(prose)) throw new InvalidInput(field, `The field ${field} is empty`);
  return prose;
}

/** An address that a browser opens and that runs nothing: http or https, without a password. @throws InvalidInput */
export function parseUrl(field: string, text: string): string {
  const url = URL.parse(parseText(field, text, urlLength));
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password)
    throw new InvalidInput(field, `The field ${field} must be an address such as https://example.com/page`);
  return url.href;
}
