/** Control characters and the path separators of all systems. */
const neverInName = /[\0-\x1f\x7f/\\]/;

/**
 * Maps a URL path to a file in the served folder; undefined if there can be none. Each segment is decoded once, so that
 * nothing encoded can leave the folder: `..`, a slash in a name, NUL. Names that start with a dot (`.env`, `.git`) are
 * refused, except `.well-known` (RFC 8615).
 */
export function filePath(pathname: string): string | undefined {
  if (!pathname.startsWith("/")) return undefined;
  const names = pathname.slice(1).split("/").map(decode);
  const allowed = names.every(
    (name, at) =>
      name !== undefined &&
      (name !== "" || at === names.length - 1) &&
      !neverInName.test(name) &&
      (!name.startsWith(".") || (at === 0 && name === ".well-known")),
  );
  return allowed ? names.join("/") : undefined;
}

function decode(name: string): string | undefined {
  try {
    return decodeURIComponent(name);
  } catch {
    return undefined;
  }
}
