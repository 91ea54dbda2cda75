/** Control characters, and what separates folders on one system or another. */
const neverInName = /[\0-\x1f\x7f/\\]/;

/**
 * The file that a path of a URL means, relative to the folder that is served; undefined for what can be none. It is decoded
 * once, name by name, so that nothing which was encoded becomes a way out of the folder: `..`, a slash in a name, NUL.
 * Names that begin with a dot (`.env`, `.git`) are nobody's business, but for `.well-known` (RFC 8615).
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
