/** Of the piece of a name that bundlers derive from the content: 8 characters (Vite, esbuild, Bun, Parcel), or hexadecimal ones. */
const lastPiece = /[.-]([A-Za-z0-9_-]{8}|[0-9a-f]{16}|[0-9a-f]{20}|[0-9a-f]{32})(?:\.[a-z0-9]+){1,2}$/;
/**
 * `variant2` and `1920x108` change less often from letters to digits, or from small to large, than a hash does; and what
 * has no digit at all (`DarkMode`, `UserList`) has to change more often to be none of our words.
 */
const fewestChanges = { withDigits: 3, without: 5 };

/** Whether a file of this name has never another content. A hash that looks like a word is only asked for more often. */
export function isNamedByContent(path: string): boolean {
  const [, piece] = path.match(lastPiece) ?? [];
  if (piece === undefined) return false;
  // What parts words is no change of its own: `light-2x`, `pt-br-v2`, `12-05-24`.
  const kinds = piece.replace(/[_-]/g, "").replace(/[a-z]/g, "a").replace(/[A-Z]/g, "A").replace(/\d/g, "0");
  const changes = [...kinds].filter((kind, at) => at > 0 && kind !== kinds[at - 1]).length;
  return changes >= (/\d/.test(piece) ? fewestChanges.withDigits : fewestChanges.without);
}

/** Whether the client has this version already (RFC 9110, 13.2.2): If-None-Match goes before If-Modified-Since. */
export function isUnchanged(headers: Headers, etag: string, modified: Date): boolean {
  const tags = headers.get("if-none-match");
  if (tags !== null) {
    const opaque = (tag: string) => tag.trim().replace(/^W\//, "");
    return tags.trim() === "*" || tags.split(",").some((tag) => opaque(tag) === opaque(etag));
  }
  const since = Date.parse(headers.get("if-modified-since") ?? "");
  // An HTTP date has no fractions of a second.
  return Math.floor(modified.getTime() / 1000) * 1000 <= since;
}
