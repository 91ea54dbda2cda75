// The packages `etag` and `fresh` derive a tag from the content and decide about 304. Here the tag is the record's
// version, and If-Match must agree with the version in the body: what remains is the grammar of a tag list.

import { InvalidInput } from "../../platform/errors.ts";

/**
 * Returns the ETag of a record: the version that a PUT replaces, for If-Match. What an answer shows of other records, such
 * as the name of an incident's type, changes without it. So it cannot validate a stored answer (RFC 9110, 8.8.1): answers
 * are `no-store`, and GET ignores If-None-Match.
 */
export const etagOf = ({ version }: { version: number }) => `"${version}"`;

/** Answers with a record and its ETag. */
export function withEtag<T extends { version: number }>(set: { headers: { etag?: string } }, record: T): T {
  set.headers.etag = etagOf(record);
  return record;
}

/** Returns the ETag header of a text, unless it has no version or one with characters that a tag cannot contain. */
export function etagOfText({ version }: { version: string | null }): { etag?: string } {
  return version !== null && /^[!#-~]+$/.test(version) ? { etag: `"${version}"` } : {};
}

const tag = String.raw`(?:W/)?"[!#-~\x80-\xff]*"`;
/** Matches the tags of `If-Match` (RFC 9110, 13.1.1). A tag may contain commas. */
const tags = new RegExp(tag, "g");
/** List elements may be empty (RFC 9110, 5.6.1.2). */
const listOfTags = new RegExp(`^[\\t ,]*${tag}(?:[\\t ]*,[\\t ,]*${tag})*[\\t ,]*$`);

/**
 * Refuses conditions that would not be checked: a client that sends one wants nothing done unless it holds (RFC 9110,
 * 13.1). The version is checked through the body, which gives 409 when it is outdated, so `If-Match` may only repeat
 * it. Any other condition, such as one on a DELETE, is refused rather than ignored.
 *
 * @throws InvalidInput
 */
export function refuseCondition({ method, headers }: Request, body: unknown): void {
  if (method === "GET" || method === "HEAD") return;
  const [match, noneMatch] = [headers.get("if-match"), headers.get("if-none-match")];
  if (noneMatch !== null)
    throw new InvalidInput("If-None-Match", "If-None-Match works only with GET and HEAD");
  if (match === null || match === "*") return;
  const { version } = (body ?? {}) as { version?: unknown };
  const given = listOfTags.test(match) ? match.match(tags) : null;
  if ((typeof version !== "number" && typeof version !== "string") || !given?.includes(`"${version}"`))
    throw new InvalidInput(
      "If-Match",
      "If-Match must repeat the version in the body, and is not accepted elsewhere",
    );
}
