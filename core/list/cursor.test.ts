import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { InvalidInput } from "../../platform/errors.ts";
import { type Key, type KeyKind, readCursor, writeCursor } from "./cursor.ts";

const keys: Record<KeyKind, fc.Arbitrary<Key>> = {
  text: fc.string({ unit: "grapheme" }).filter((text) => !text.includes("\0")),
  id: fc.integer({ min: 1 }),
  rank: fc.tuple(
    fc.oneof(fc.constant(0), fc.double({ min: 1e-20, max: 1, noNaN: true })),
    fc.integer({ min: 1 }),
    fc.integer({ min: 1 }),
  ),
  instant: fc.date({ noInvalidDate: true, min: new Date(0), max: new Date("2999-01-01") }),
};
const ids = fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER });

test.each(Object.keys(keys) as KeyKind[])("a cursor of kind %s returns to its place", (kind) => {
  fc.assert(
    fc.property(keys[kind], ids, (key, id) => {
      const place = readCursor(writeCursor("list", { key, id }), "list", kind);
      expect(place).toEqual({ key: key instanceof Date ? key.toISOString() : key, id });
    }),
  );
});

describe("a cursor is refused", () => {
  const cursor = writeCursor("list", { key: "Runbook", id: 7 });
  const refused = (text: string, binding = "list", kind: KeyKind = "text") => {
    expect(() => readCursor(text, binding, kind)).toThrow(InvalidInput);
  };

  test("with any character changed, added or removed", () => {
    for (let i = 0; i < cursor.length; i += 1) {
      const other = cursor[i] === "A" ? "B" : "A";
      refused(cursor.slice(0, i) + other + cursor.slice(i + 1));
      refused(cursor.slice(0, i) + cursor.slice(i + 1));
      refused(`${cursor.slice(0, i)}A${cursor.slice(i)}`);
      refused(cursor.slice(0, i));
    }
    for (const more of ["=", "==", "A", " ", "\n", ".", "\0"]) refused(cursor + more);
  });

  test("for another list", () => refused(cursor, "another"));

  test.each(["null", "7", "{}", "[]", "no JSON", ""])("with a forged digest of %p", (place) => {
    const digest = new Bun.CryptoHasher("sha256").update(JSON.stringify(["list", place])).digest();
    refused(Buffer.concat([digest.subarray(0, 16), Buffer.from(place)]).toString("base64url"));
  });

  // Made with `writeCursor`, as somebody who has read it could.
  test.each<[KeyKind, unknown, unknown]>([
    ["text", 7, 7],
    ["text", "a\0", 7],
    ["text", null, 7],
    ["text", "a", -1],
    ["text", "a", 0],
    ["text", "a", 1.5],
    ["text", "a", 2 ** 60],
    ["text", "a", "7"],
    ["text", "a", null],
    ["id", -1, 7],
    ["id", "1", 7],
    ["rank", 0.5, 7],
    ["rank", [], 7],
    ["rank", [1e-300, 9, 1], 7],
    ["rank", [1e300, 9, 1], 7],
    ["rank", [-0.5, 9, 1], 7],
    ["rank", ["0.5", 9, 1], 7],
    ["rank", [0.5, "9", 1], 7],
    ["rank", [0.5, 0, 1], 7],
    ["rank", [0.5, 9, 2 ** 60], 7],
    ["rank", [0.5, 9], 7],
    ["rank", [0.5, 9, 1, 1], 7],
    ["instant", "2026-02-30T00:00:00.000Z", 7],
    ["instant", "now", 7],
    ["instant", "+012026-01-01T00:00:00.000Z", 7],
    ["instant", "-000001-01-01T00:00:00.000Z", 7],
    ["instant", "0000-01-01T00:00:00.000Z", 7],
    ["instant", 0, 7],
  ])("%s of %p and id %p", (kind, key, id) => {
    refused(writeCursor("list", { key, id } as never), "list", kind);
  });
});
