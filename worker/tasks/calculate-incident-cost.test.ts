import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { asc, count, eq, ne, sql } from "drizzle-orm";
import { readConfig } from "../../core/config.ts";
import { populate } from "../../core/populate/populate.ts";
import type { Fault } from "../../core/schedule/runs.ts";
import { incident, incidentCost } from "../../drizzle/schema/index.ts";
import { createLog } from "../../platform/log.ts";
import { pluginsOf } from "../../plugins/fake/plugins.ts";
import { TestClock } from "../../tests/support/clock.ts";
import { useDatabase } from "../../tests/support/database/database.ts";
import { insertMany, prepareCosts } from "../../tests/support/domain/costs.ts";
import { taskContextOf } from "../../tests/support/domain/task_context.ts";
import type { TaskContext } from "../task.ts";
import { calculateIncidentCost } from "./calculate-incident-cost.ts";

const client = useDatabase(3);
const start = new Date("2026-12-01T12:00:00.000Z");
let clock = new TestClock(start);
let kinds: Awaited<ReturnType<typeof prepareCosts>>;
let transactions = 0;
let faults: Fault[] = [];
beforeAll(async () => {
  await populate(client.db, clock);
  kinds = await prepareCosts(client.db, clock.now(), 2);
});
beforeEach(async () => {
  await client.db.delete(incident);
  clock = new TestClock(start);
  [transactions, faults] = [0, []];
});
afterAll(() => client.db.delete(incident));

async function run(more: Partial<TaskContext> = {}) {
  const { db } = client;
  const parts = { db, clock, config: readConfig({}), log: createLog("silent"), plugins: pluginsOf() };
  return await calculateIncidentCost.run({
    ...taskContextOf(parts, faults),
    transaction: (work) => {
      transactions += 1;
      return db.transaction(work);
    },
    ...more,
  });
}
const costs = async () =>
  (
    await client.db.select({ cost: incident.cost, n: count() }).from(incident).groupBy(incident.cost)
  ).toSorted((a, b) => a.cost - b.cost);
const ids = async () =>
  (await client.db.select({ id: incident.id }).from(incident).orderBy(asc(incident.id))).map(({ id }) => id);

test("computes each due incident once, in batches, and nothing else", async () => {
  const { db } = client;
  await insertMany(db, kinds, { incidents: 3000, active: 2500 });
  clock.advance(2 * 3600);
  expect(await run()).toEqual({ done: 2500, skipped: 0, failed: 0 });
  expect(transactions).toBe(3);
  expect(await costs()).toEqual([
    { cost: 0, n: 500 },
    { cost: 939, n: 2500 },
  ]);
  expect(await db.$count(incident, eq(incident.cost, 0))).toBe(
    await db.$count(incident, ne(incident.status, "Active")),
  );
  expect(await run()).toEqual({ done: 0, skipped: 2500, failed: 0 });
  expect(await db.$count(incidentCost)).toBe(2500);
});

describe("a locked incident", () => {
  /** Locks one incident of a hundred while `released` runs, as a reminder would. */
  async function whileLocked(released: (release: () => void) => Promise<void>): Promise<void> {
    await insertMany(client.db, kinds, { incidents: 100, active: 100 });
    clock.advance(2 * 3600);
    const third = (await ids())[2]!;
    const [held, end] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const other = client.db.transaction(async (tx) => {
      await tx.select({ id: incident.id }).from(incident).where(eq(incident.id, third)).for("share");
      held.resolve();
      await end.promise;
    });
    await held.promise;
    await released(end.resolve).finally(end.resolve);
    await other;
  }

  test("is computed a little later in the same run", async () => {
    await whileLocked(async (release) => {
      const result = await run({
        transaction: async (work) => {
          transactions += 1;
          const answer = await client.db.transaction(work);
          if (transactions === 2) release();
          return answer;
        },
      });
      expect(result).toEqual({ done: 100, skipped: 0, failed: 0 });
      expect(faults).toEqual([]);
    });
  });

  test("is postponed and counted if it stays locked", async () => {
    await whileLocked(async () => {
      const postponed: string[] = [];
      const result = await run({ postpone: (item) => void postponed.push(item) });
      expect(result).toEqual({ done: 99, skipped: 0, failed: 1 });
      expect(postponed).toEqual([`incident ${(await ids())[2]}`]);
    });
    expect(await run()).toEqual({ done: 1, skipped: 99, failed: 0 });
  });
});

describe("one bad incident of a hundred does not affect the others:", () => {
  test("an unexpected error", async () => {
    await insertMany(client.db, kinds, { incidents: 100, active: 100 });
    clock.advance(2 * 3600);
    const bad = (await ids())[41]!;
    await client.db.execute(
      sql.raw(`
      create function refuse() returns trigger language plpgsql as
        $$ begin if new.incident_id = ${bad} then raise exception 'no'; end if; return new; end $$;
      create trigger refuse before insert on incident_cost for each row execute function refuse()`),
    );
    expect(await run()).toEqual({ done: 99, skipped: 0, failed: 1 });
    await client.db.execute(sql`drop function refuse cascade`);
    expect(faults).toEqual([{ item: `incident ${bad}`, reason: "Unexpected error; see the worker's log" }]);
    // The whole batch, then at each level the half with the bad incident and the other half.
    expect(transactions).toBeLessThanOrEqual(1 + 2 * 7);
  });
});

test.each([
  ["NaN", "update cost_formula_role set multiplier = 'NaN' where role = 'commander'"],
  ["infinite", "update cost_formula set review_hours = 'infinity'"],
])("a formula with a number that is %s ends the run, without a log line per incident", async (_, update) => {
  await insertMany(client.db, kinds, { incidents: 3, active: 3 });
  clock.advance(2 * 3600);
  const [kept] = await client.db.execute<{ review_hours: string }>(
    sql`select review_hours from cost_formula`,
  );
  await client.db.execute(sql.raw(update));
  try {
    await expect(run()).rejects.toThrow(
      /^Cost formula \d+ has a number that is NaN or infinite: add a version/,
    );
    expect([transactions, faults]).toEqual([0, []]);
  } finally {
    await client.db.execute(sql`update cost_formula_role set multiplier = 1 where multiplier = 'NaN'`);
    await client.db.execute(sql`update cost_formula set review_hours = ${kept!.review_hours}::numeric`);
  }
  expect(await run()).toMatchObject({ done: 3, failed: 0 });
});

test("a cost that exceeds the column's range fails its incident with a clear reason", async () => {
  await insertMany(client.db, kinds, { incidents: 2, active: 2 });
  clock.advance(2 * 3600);
  const { db } = client;
  await db.execute(sql`create table kept as select * from cost_formula_role`);
  await db.execute(sql`update cost_formula_role set multiplier = 1e300`);
  try {
    expect(await run()).toMatchObject({ done: 0, failed: 2 });
    expect(faults.map(({ reason }) => reason)).toEqual([
      "A number is too large to store",
      "A number is too large to store",
    ]);
  } finally {
    await db.execute(sql`
      update cost_formula_role r set multiplier = kept.multiplier from kept
      where (kept.formula_version, kept.role) = (r.formula_version, r.role)`);
    await db.execute(sql`drop table kept`);
  }
});
