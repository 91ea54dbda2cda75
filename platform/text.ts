import { InvalidInput } from "./errors.ts";

/** In UTF-16 characters, for names, titles and kinds. */
export const nameLength = 500;
/** In UTF-16 characters, for text that people type into a form. */
export const descriptionLength = 20_000;
export const urlLength = 2_000;

/**
 * More combining marks in a row than any language needs (Unicode, UAX #15, 13). Normalization, here and in PostgreSQL, sorts
 * the marks after a letter in quadratic time: 40,000 of them take 30 s. The last two, of half width, become marks by NFKC.
 */
const tooManyMarks = /([\p{M}\uff9e\uff9f]{30})[\p{M}\uff9e\uff9f]+/gu;

/** Drops the combining marks after the thirtieth in a row, so that a text can be normalized in a short time. */
export function withFewMarks(text: string): string {
  return text.replace(tooManyMarks, "$1");
}

/**
 * Checks that PostgreSQL can store a text, and normalize it in a short time: no NUL, no unpaired surrogate, at most
 * `longest` characters, and at most 30 combining marks in a row.
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
  if (text.search(tooManyMarks) !== -1)
    throw new InvalidInput(field, `The field ${field} has more than 30 accents on one letter`);
  return text;
}

/**
 * Makes foreign text safe for a terminal: control characters (which start escape sequences), bidirectional overrides and
 * other invisible characters become U+FFFD, and the text is cut after `limit` characters. The joiners stay: many emoji, and
 * scripts such as Persian and Hindi, are written with them.
 */
export function printable(text: string, limit = 2000): string {
  const clean = text.replace(/[[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]--[\u200c\u200d]]/gv, "\uFFFD");
  return shortened(clean, limit);
}

/** Cuts a text after `limit` characters, never in the middle of one of two UTF-16 units. */
export function shortened(text: string, limit: number): string {
  return text.length > limit ? `${text.slice(0, limit).replace(/\p{Cs}$/u, "")}…` : text;
}

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

/** Whether it contains any visible character, besides space, joiners, fillers and soft hyphens. */
export function isSeen(text: string): boolean {
  return /[^\p{Cc}\p{Z}\p{Default_Ignorable_Code_Point}]/u.test(text);
}

/**
 * Embeddings, overrides and isolates (Unicode, UAX #9, 2): names appear within subjects and lines of ours, and these
 * would reverse the text after a name. Right-to-left scripts need none of them.
 */
const turns = /[\u202a-\u202e\u2066-\u2069]/;

/** Parses a single line of text that is not empty, and trims it. @throws InvalidInput */
export function parseName(field: string, text: string): string {
  const name = parseText(field, text, nameLength).trim();
  if (!isSeen(name)) throw new InvalidInput(field, `The field ${field} is empty`);
  if (/[\p{Cc}\p{Zl}\p{Zp}]/u.test(name))
    throw new InvalidInput(field, `The field ${field} must be a single line of text`);
  if (turns.test(name))
    throw new InvalidInput(field, `The field ${field} contains a character that changes the text direction`);
  return name;
}

/** Parses text of any number of lines that is not empty. @throws InvalidInput */
export function parseProse(field: string, text: string): string {
  const prose = parseText(field, text, descriptionLength);
  if (!isSeen(prose)) throw new InvalidInput(field, `The field ${field} is empty`);
  return prose;
}

/** Parses an address that is safe to open in a browser: http or https, without a password. @throws InvalidInput */
export function parseUrl(field: string, text: string): string {
  const url = URL.parse(parseText(field, text, urlLength));
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password)
    throw new InvalidInput(field, `The field ${field} must be an address such as https://example.com/page`);
  return url.href;
}
