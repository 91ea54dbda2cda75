/** The hash that bundlers add to a name: 8 characters (Vite, esbuild, Bun, Parcel), or hexadecimal digits. */
const lastPiece = /[.-]([A-Za-z0-9_-]{8}|[0-9a-f]{16}|[0-9a-f]{20}|[0-9a-f]{32})(?:\.[a-z0-9]+){1,2}$/;
/**
 * `variant2` and `1920x108` switch less often between letters and digits, or between cases, than a hash does. A piece
 * without digits (`DarkMode`, `UserList`) must switch more often to count as a hash.
 */
const fewestChanges = { withDigits: 3, without: 5 };

/**
 * Whether a file of this name never changes its content. A hash that looks like a word is only revalidated more often.
 */
export function isNamedByContent(path: string): boolean {
  const [, piece] = path.match(lastPiece) ?? [];
  if (piece === undefined) return false;
  // Separators do not count as a switch: `light-2x`, `pt-br-v2`, `12-05-24`.
  const kinds = piece.replace(/[_-]/g, "").replace(/[a-z]/g, "a").replace(/[A-Z]/g, "A").replace(/\d/g, "0");
  const changes = [...kinds].filter((kind, at) => at > 0 && kind !== kinds[at - 1]).length;
  return changes >= (/\d/.test(piece) ? fewestChanges.withDigits : fewestChanges.without);
}

/**
 * Whether the client already has this version (RFC 9110, 13.2.2): If-None-Match takes precedence over
 * If-Modified-Since, which is ignored if the time of the last change is unknown.
 */
export function isUnchanged(headers: Headers, etag: string, modified?: Date): boolean {
  const tags = headers.get("if-none-match");
  if (tags !== null) return names(tags, opaque(etag), opaque);
  return modified !== undefined && secondOf(modified) <= timeOf(headers.get("if-modified-since"));
}

/** Whether the client's precondition fails (RFC 9110, 13.2.2): If-Match takes precedence over If-Unmodified-Since. */
export function isUnwanted(headers: Headers, etag: string, modified: Date): boolean {
  const tags = headers.get("if-match");
  // A weak tag vouches for no byte of it (RFC 9110, 8.8.3.2).
  if (tags !== null) return !names(tags, etag.startsWith('"') ? etag : undefined);
  return secondOf(modified) > timeOf(headers.get("if-unmodified-since"));
}

function names(tags: string, etag: string | undefined, part = (tag: string) => tag): boolean {
  return tags.trim() === "*" || tags.split(",").some((tag) => part(tag.trim()) === etag);
}

function opaque(etag: string): string {
  return etag.replace(/^W\//, "");
}

const [day, month] = ["(Mon|Tue|Wed|Thu|Fri|Sat|Sun)", "(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"];
const time = String.raw`\d\d:\d\d:\d\d`;
/** RFC 9110, 5.6.7: the preferred format, and the two obsolete ones that must be accepted. */
const dates = [
  new RegExp(String.raw`^${day}, \d\d ${month} \d{4} ${time} GMT$`),
  new RegExp(String.raw`^(Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, \d\d-${month}-\d\d ${time} GMT$`),
];
const dateOfC = new RegExp(String.raw`^${day} ${month} [ \d]\d ${time} \d{4}$`);

/** Returns NaN, which compares false with any time, for an invalid HTTP date: `2035` is a date in JavaScript only. */
function timeOf(date: string | null): number {
  if (date === null) return Number.NaN;
  // This format is in GMT without saying so.
  if (dateOfC.test(date)) return Date.parse(`${date} GMT`);
  return dates.some((form) => form.test(date)) ? Date.parse(date) : Number.NaN;
}

/** An HTTP date has no fractions of a second. */
function secondOf(date: Date): number {
  return Math.floor(date.getTime() / 1000) * 1000;
}
