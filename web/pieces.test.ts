import { expect, test } from "bun:test";
import { gunzipSync } from "node:zlib";
import { gzipOf, pieceOf } from "./pieces.ts";

test("pieces, and texts between them, are one file of gzip", () => {
  const long = "Ünïcode 📟 <p>text</p> ".repeat(3000);
  const parts = [pieceOf(long), "short", pieceOf(""), "", "x".repeat(65_535), pieceOf("é")];
  const text = parts.map((part) => (typeof part === "string" ? part : part.text)).join("");
  const bytes = gzipOf(parts);
  expect(gunzipSync(bytes).toString()).toBe(text);
  expect(new TextDecoder().decode(Bun.gunzipSync(bytes))).toBe(text);
  expect(bytes.length).toBeLessThan(68_000);
});
