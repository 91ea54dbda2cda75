import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { canonicalUserName } from "./name.ts";

const canonical = (name: string) => canonicalUserName(name, "Example.com");

describe("canonicalUserName", () => {
  test.each([
    ["alice", "alice@example.com"],
    ["Alice@Example.COM", "alice@example.com"],
    ["a.b+c@x.y", "a.b+c@x.y"],
    ["JOSÉ", "josé@example.com"],
    ["jose\u0301", "josé@example.com"],
    ["J\u030C", "\u01F0@example.com"],
    ["H\u0331", "\u1E96@example.com"],
    ["straße", "straße@example.com"],
    ["ΑΛΙΚΗ", "αλικη@example.com"],
    ["user@bücher.example", "user@bücher.example"],
  ])("%p is %p", (name, expected) => {
    expect(canonical(name)).toBe(expected);
  });

  test.each([
    "",
    " ",
    "\t",
    ".",
    "..",
    ".a",
    "a.",
    "a..b",
    "a/b",
    "a\\b",
    "a b",
    "a\u0000b",
    "a\u007fb",
    "a\u0085b",
    "a\u200bb",
    "\u3164@example.com",
    "a\u115fb@example.com",
    "\u0301a@example.com",
    "a.\u0301b@example.com",
    "a@\u0301b.example",
    "a\u202eb",
    "a\ufeffb",
    "a@",
    "@b",
    "a@b@c",
    "a@-b.c",
    "a@b..c",
    "a@.b",
    "a%b",
    "a,b",
    "<a>",
    '"a"',
    "a:b",
    "K\u212A",
    "\uFF41lice",
    "\u0130stanbul",
    "\u017Fam",
    "\u{1D5BA}lice",
    "\ud800",
    "a".repeat(255),
    `${"a".repeat(250)}`,
  ])("%p is no user name", (name) => {
    expect(() => canonical(name)).toThrow(expect.objectContaining({ code: "invalid_input", field: "user" }));
  });

  test("a bare name needs a domain from somewhere", () => {
    expect(() => canonicalUserName("alice")).toThrow("needs its domain");
  });

  test("is its own canonical form, has no upper case, and errors never repeat the name", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 300 }), (name) => {
        let first: string;
        try {
          first = canonical(name);
        } catch (error) {
          if (name.trim().length > 12) expect(String(error)).not.toContain(name);
          return;
        }
        expect(canonicalUserName(first)).toBe(first);
        expect(first).toBe(first.toLowerCase());
        expect(first).toBe(first.normalize("NFC"));
      }),
      { numRuns: 2000 },
    );
  });

  test("a non-ASCII name never becomes an ASCII name", () => {
    // A canonical form in plain ASCII came from plain ASCII.
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", minLength: 1, maxLength: 12 }), (name) => {
        let result: string;
        try {
          result = canonical(name);
        } catch {
          return;
        }
        if (/^[\0-\x7f]*$/.test(result)) expect(name).toMatch(/^[\0-\x7f]*$/);
      }),
      { numRuns: 2000 },
    );
  });
});
