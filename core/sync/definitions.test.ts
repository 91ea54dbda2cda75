import { expect, test } from "bun:test";
import fc from "fast-check";
import { type Definitions, definitionsDifference, type Meaning } from "./definitions.ts";

const terms = fc.constantFrom("t1", "t2", "t3");
const definitions = fc.constantFrom("d1", "d2", "d3");
const texts = fc.constantFrom("one", "two");
const items = fc.uniqueArray(
  fc.record({
    externalId: terms,
    definitions: fc.uniqueArray(fc.record({ externalId: definitions, text: texts }), {
      selector: (one) => one.externalId,
    }),
  }),
  { selector: (one) => one.externalId },
);
const kept: fc.Arbitrary<Definitions> = fc
  .record({
    texts: fc.array(fc.tuple(definitions, texts)),
    meanings: fc.uniqueArray(fc.record({ term: terms, definition: definitions }), {
      selector: (one) => JSON.stringify(one),
    }),
  })
  .map(({ texts, meanings }) => ({
    texts: new Map([...meanings.map(({ definition }) => [definition, "one"] as const), ...texts]),
    meanings,
  }));

const same = (one: Meaning, other: Meaning) => one.term === other.term && one.definition === other.definition;

function apply(before: Definitions, difference: ReturnType<typeof definitionsDifference>): Definitions {
  const { written, added, removed } = difference;
  return {
    texts: new Map([...before.texts, ...written.map(({ externalId, text }) => [externalId, text] as const)]),
    meanings: [...before.meanings.filter((one) => !removed.some((other) => same(one, other))), ...added],
  };
}

test("listed terms get their source's definitions, others keep theirs, and a repetition does nothing", () => {
  fc.assert(
    fc.property(kept, items, (before, items) => {
      const after = apply(before, definitionsDifference(before, items));
      for (const { externalId: term, definitions } of items) {
        const ours = after.meanings.filter((one) => one.term === term).map(({ definition }) => definition);
        expect(ours.toSorted()).toEqual(definitions.map(({ externalId }) => externalId).toSorted());
      }
      const unlisted = ({ term }: Meaning) => !items.some(({ externalId }) => externalId === term);
      expect(after.meanings.filter(unlisted)).toEqual(before.meanings.filter(unlisted));
      expect(definitionsDifference(after, items)).toEqual({ written: [], added: [], removed: [] });
    }),
  );
});

test("of two texts of one definition the first counts", () => {
  const items = [
    { externalId: "t1", definitions: [{ externalId: "d", text: "first" }] },
    { externalId: "t2", definitions: [{ externalId: "d", text: "second" }] },
  ];
  const { written } = definitionsDifference({ texts: new Map(), meanings: [] }, items);
  expect(written).toEqual([{ externalId: "d", text: "first" }]);
});
