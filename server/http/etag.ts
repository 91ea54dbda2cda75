// The packages `etag` and `fresh` derive a tag from the content and decide a 304. Here the tag is the record's version, and
// If-Match has to agree with the version in the body: what remains is the grammar of a list of tags.

import { InvalidInput } from "../../platform/errors.ts";

/** The strong validator of RFC 9110, 8.8.3: whatever an answer shows of a record is of this version. */
export const etagOf = ({ version }: { version: number }) => `"${version}"`;

/** The header of a text, unless its version is none or has what no tag may have. */
export function etagOfText({ version }: { version: string | null }): { etag?: string } {
  return version !== null && /^[!#-~]+$/.test(version) ? { etag: `"${version}"` } : {};
}

const tag = String.raw`(?:W/)?"[!#-~\x80-\xff]*"`;
/** Of `If-Match` (RFC 9110, 13.1.1). A comma may stand in a tag as well. */
const tags = new RegExp(tag, "g");
/** Elements of a list may be empty (RFC 9110, 5.6.1.2). */
const listOfTags = new RegExp(`^[\\t ,]*${tag}(?:[\\t ]*,[\\t ,]*${tag})*[\\t ,]*$`);

/**
 * Who sends a condition wants nothing done where it does not hold (RFC 9110, 13.1). Of those, a body says the version, and
 * 409 is the answer when it is another by now: `If-Match` may say the same once more. What nobody would look at, such as
 * that of a DELETE, is refused instead of being hoped for in vain.
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
      "If-Match stands beside a body with the same version, and nowhere else",
    );
}
