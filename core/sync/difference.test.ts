import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { type Difference, differenceOf, type Kept, type Listed } from "./difference.ts";

interface Fields {
  text: string;
}

const ids: fc.Arbitrary<string> = fc.constantFrom("a", "b", "c", "d", "e");
const fields = fc.record({ text: fc.constantFrom("one", "two") });
const listed = fc.uniqueArray(fc.record({ externalId: ids, fields }), { selector: (one) => one.externalId });
const kept = fc.uniqueArray(fc.record({ externalId: ids, gone: fc.boolean(), fields }), {
  selector: (one) => one.externalId,
});

/** Applies a difference as the writing code does. */
function apply(before: readonly Kept<Fields>[], { written, vanished }: Difference<Fields>): Kept<Fields>[] {
  const after = new Map(before.map((record) => [record.externalId, record]));
  for (const record of written) after.set(record.externalId, { ...record, gone: false });
  for (const externalId of vanished) after.set(externalId, { ...after.get(externalId)!, gone: true });
  return [...after.values()];
}

const present = (records: readonly Kept<Fields>[]): Listed<Fields>[] =>
  records
    .filter(({ gone }) => !gone)
    .map(({ externalId, fields }) => ({ externalId, fields }))
    .sort((a, b) => a.externalId.localeCompare(b.externalId));

describe("our records with the difference applied are the list", () => {
  test("for any previous records; nothing is lost, and a repetition does nothing", () => {
    fc.assert(
      fc.property(kept, listed, (before, list) => {
        const after = apply(before, differenceOf(before, list));
        expect(present(after)).toEqual(list.toSorted((a, b) => a.externalId.localeCompare(b.externalId)));
        expect(before.every(({ externalId }) => after.some((one) => one.externalId === externalId))).toBe(
          true,
        );
        expect(differenceOf(after, list)).toEqual({ written: [], vanished: [], same: list.length });
      }),
    );
  });

  test("with no more writes than necessary", () => {
    fc.assert(
      fc.property(kept, listed, (before, list) => {
        const { written, vanished, same } = differenceOf(before, list);
        expect(written.length + same).toBe(list.length);
        for (const { externalId, fields } of written)
          expect(present(before)).not.toContainEqual({ externalId, fields });
        for (const externalId of vanished)
          expect(list.some((one) => one.externalId === externalId)).toBe(false);
      }),
    );
  });

  test("except for unreadable records, which stay unchanged", () => {
    fc.assert(
      fc.property(kept, listed, fc.uniqueArray(ids), (before, list, unread) => {
        const read = list.filter(({ externalId }) => !unread.includes(externalId));
        const after = apply(before, differenceOf(before, read, new Set(unread)));
        const of = (records: readonly Kept<Fields>[]) =>
          records.filter(({ externalId }) => unread.includes(externalId));
        expect(of(after)).toEqual(of(before));
      }),
    );
  });
});
