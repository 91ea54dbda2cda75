import { expect, test } from "bun:test";
import fc from "fast-check";
import { createEmptyTestDatabase } from "../../tests/support/database/database.ts";
import { testRevision } from "../../tests/support/database/revision.ts";
import { effort } from "../../tests/support/effort.ts";
import { openSql } from "../client.ts";
import { canonicalSchema } from "./canonical.ts";
import { downgrade } from "./downgrade.ts";
import { inOrder, type Revision, withAncestors } from "./history.ts";
import { upgrade } from "./upgrade.ts";

const runs = effort(6);

/** For each revision: the earlier ones it follows, its sort prefix, and which ancestor's table it changes. */
const shapes = fc.integer({ min: 2, max: 7 }).chain((size) =>
  fc.tuple(
    ...Array.from({ length: size }, (_, at) =>
      fc.record({
        parents: fc.subarray([...Array(at).keys()], { maxLength: Math.min(3, at) }),
        changes: fc.nat(),
        name: fc.nat(99),
      }),
    ),
  ),
);

type Shapes = { parents: number[]; changes: number; name: number }[];

/** Each creates a table and, if it has ancestors, changes one of theirs. */
function revisionsOf(list: Shapes): Revision[] {
  const revisions: Revision[] = [];
  const id = (at: number) => `${String(list[at]!.name).padStart(2, "0")}_r${at}`;
  for (const [at, { parents, changes }] of list.entries()) {
    const own = { id: id(at), parents: parents.map(id) };
    const ancestors = [...withAncestors([...revisions, own], own.id)].filter((one) => one !== own.id);
    const target = ancestors[changes % ancestors.length];
    const up = [`create table "${own.id}" (id int primary key)`];
    const down = [`drop table "${own.id}"`];
    if (target) {
      up.push(`alter table "${target}" add column "c${at}" int references "${own.id}"`);
      down.unshift(`alter table "${target}" drop column "c${at}"`);
    }
    revisions.push(testRevision(own.id, own.parents, up.join(";\n"), down.join(";\n")));
  }
  // A release has one head.
  return [
    ...revisions,
    testRevision(
      "zz_head",
      revisions.map((one) => one.id),
      "",
      "",
    ),
  ];
}

/** A random order in which each revision comes after its parents. */
function drawnOrder(revisions: readonly Revision[], draws: readonly number[]): string[] {
  const order: string[] = [];
  for (let at = 0; order.length < revisions.length; at += 1) {
    const ready = revisions.filter(
      ({ id, parents }) => !order.includes(id) && parents.every((parent) => order.includes(parent)),
    );
    order.push(ready[draws[at % draws.length]! % ready.length]!.id);
  }
  return order;
}

test("every order that the graph allows gives the same schema, and downgrading leaves none", async () => {
  const draws = fc.array(fc.nat(), { minLength: 7, maxLength: 7 });
  await fc.assert(
    fc.asyncProperty(shapes, draws, async (list, order) => {
      const revisions = revisionsOf(list);
      await using whole = await createEmptyTestDatabase();
      await using stepwise = await createEmptyTestDatabase();
      expect((await upgrade({ url: whole.url, revisions })).applied).toEqual(
        inOrder(revisions).map(({ id }) => id),
      );
      for (const target of drawnOrder(revisions, order)) {
        expect((await upgrade({ url: stepwise.url, revisions, target })).applied).toEqual([target]);
      }
      expect(await schemaOf(stepwise.url)).toBe(await schemaOf(whole.url));
      const { reverted } = await downgrade({ url: stepwise.url, revisions, target: "base" });
      expect(reverted).toHaveLength(revisions.length);
      await using empty = await createEmptyTestDatabase();
      expect(await schemaOf(stepwise.url)).toBe(await schemaOf(empty.url));
    }),
    { numRuns: runs },
  );
});

async function schemaOf(url: string): Promise<string> {
  const sql = openSql(url, { max: 1 });
  try {
    return await canonicalSchema(sql);
  } finally {
    await sql.end();
  }
}
