import { expect, test } from "bun:test";
import { join, sep } from "node:path";
import fc from "fast-check";
import { filePath } from "./file_path.ts";

test.each([
  ["/", ""],
  ["/index.html", "index.html"],
  ["/a/b.js", "a/b.js"],
  ["/a/", "a/"],
  ["/a%20b/%C3%BC.css", "a b/ü.css"],
  ["/a..b", "a..b"],
  ["/.well-known/security.txt", ".well-known/security.txt"],
  // After double encoding, the name contains a literal %.
  ["/%252e%252e/x", "%2e%2e/x"],
])("%s maps to %p", (pathname, path) => expect(filePath(pathname)).toBe(path));

test.each([
  "",
  "a",
  "/..",
  "/../x",
  "/a/../b",
  "/a/..",
  "/%2e%2e/x",
  "/%2E%2e%2fx",
  "/.%2e/x",
  "/./a",
  "/a/./b",
  "//",
  "//a",
  "/a//b",
  "/a%2fb",
  "/a%2Fb",
  "/%2fetc/passwd",
  "/a\\b",
  "/a%5cb",
  "/..\\x",
  "/..%5cx",
  "/a%00b",
  "/a%00.html",
  "/a\0",
  "/a%0ab",
  "/a%7f",
  "/%",
  "/%zz",
  "/%c0%ae%c0%ae/x",
  "/%ff",
  "/.env",
  "/.git/config",
  "/a/.env",
  "/%2eenv",
  "/a/.well-known/x",
  "/.well-known/.env",
  "/.well-known/..",
])("%p maps to nothing", (pathname) => expect(filePath(pathname)).toBeUndefined());

test("any path stays within the folder", () => {
  const piece = fc.oneof(
    fc.constantFrom("..", ".", "/", "\\", "%2e", "%2f", "%5c", "%25", "%00", "a", "", ".env", "%c0%ae"),
    fc.string({ unit: "binary", maxLength: 4 }),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
      const path = filePath(`/${pieces.join("")}`);
      if (path === undefined) return;
      expect(join("/folder", path).startsWith(`/folder${path === "" ? "" : sep}`)).toBe(true);
      expect(path).not.toMatch(/(^|\/)\.(?!well-known)|\0|\\/);
    }),
    { numRuns: 2000 },
  );
});
