import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";

/** What a fast test must not need: a database, the built program, or another process. */
const slow =
  /SVC_TEST_(DATABASE_URL|DEBIAN_URL|PROGRAM)|startEmbeddedPostgres|Bun\.(spawn|spawnSync|WebView)\b|node:child_process/;
const imported = /\b(?:from\s*|import\s*\(?\s*)"(\.[^"]+)"/g;

/**
 * The test files of `paths` that need neither PostgreSQL nor a process: neither they nor the support files that they
 * import, directly or not, mention one.
 */
export function fastTestsOf(paths: readonly string[], root: string): string[] {
  const known = new Map<string, boolean>();
  const isSlow = (path: string): boolean => {
    const before = known.get(path);
    if (before !== undefined) return before;
    known.set(path, false);
    if (!existsSync(join(root, path))) return false;
    const text = readFileSync(join(root, path), "utf8");
    const supports = [...text.matchAll(imported)]
      .map(([, to]) => relative(root, join(root, dirname(path), to!)))
      .filter((to) => /^(tests|bench|scripts)\/|\.test\.ts$/.test(to));
    const result = slow.test(text) || supports.some(isSlow);
    known.set(path, result);
    return result;
  };
  return paths.filter((path) => !isSlow(path));
}
