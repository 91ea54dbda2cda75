import { expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import type { Transaction } from "../../../drizzle/client.ts";
import { individual } from "../../../drizzle/schema/index.ts";
import { inTheWay } from "../../../tests/support/database/blocked.ts";
import { useDatabase } from "../../../tests/support/database/database.ts";
import { individualOf } from "../../catalog/person/of_actor.ts";
import { individualsOf } from "./people.ts";

const at = new Date("2026-12-01T12:00:00Z");
const eve = "eve@example.com";

const client = useDatabase(8);

const idsOf = (emails: string[]) => client.db.transaction((tx) => individualsOf(tx, emails, at));

test("a person whom another transaction creates meanwhile is not duplicated", async () => {
  const { promise: made, resolve: commit } = Promise.withResolvers<void>();
  const { promise: begun, resolve: hasBegun } = Promise.withResolvers<void>();
  const first = client.db.transaction(async (tx) => {
    const ids = await individualsOf(tx, ["zoe@example.com"], at);
    hasBegun();
    await made;
    return ids;
  });
  await begun;
  const second = idsOf(["zoe@example.com"]);
  commit();
  expect(await second).toEqual(await first);
  expect(await idsOf(["zoe@example.com", "zoe@example.com"])).toEqual(await first);
});

test("creating the same people in different orders does not deadlock", async () => {
  for (let round = 0; round < 5; round += 1) {
    const emails = Array.from({ length: 300 }, (_, i) => `p${round}-${i}@example.com`);
    const ids = await Promise.all(
      Array.from({ length: 8 }, (_, i) => idsOf(i % 2 ? emails : emails.toReversed())),
    );
    for (const other of ids) expect([...other].sort()).toEqual([...ids[0]!].sort());
  }
});

test("no addresses give no people", async () => {
  expect(await idsOf([])).toEqual(new Map());
});

test.each([
  ["individualsOf", async (tx: Transaction) => (await individualsOf(tx, [eve], at)).get(eve)!],
  ["individualOf", (tx: Transaction) => individualOf(tx, { user: eve }, at)],
])("%s: a person who is being deleted is created again", async (_, find) => {
  const { db } = client;
  const before = await db.transaction(find);
  const [named] = await inTheWay(
    db,
    (tx) => tx.delete(individual).where(eq(individual.id, before)),
    () => db.transaction(find),
  );
  const rows = await db.select().from(individual).where(eq(individual.email, eve));
  expect(rows.map(({ id }) => id)).not.toContain(before);
  expect(named).toEqual({ status: "fulfilled", value: rows[0]!.id });
});
