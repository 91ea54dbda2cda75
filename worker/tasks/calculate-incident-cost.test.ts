import { expect, test } from "bun:test";
import { count, eq, ne } from "drizzle-orm";
import { readConfig } from "../../core/config.ts";
import { createLog } from "../../core/log.ts";
import { populate } from "../../core/populate/populate.ts";
import { openDatabase } from "../../drizzle/client.ts";
import { incident, incidentCost } from "../../drizzle/schema/index.ts";
import { pluginsOf } from "../../plugins/fake/plugins.ts";
import { TestClock } from "../../tests/support/clock.ts";
import { insertMany, prepareCosts } from "../../tests/support/costs.ts";
import { createTestDatabase } from "../../tests/support/database.ts";
import { taskContextOf } from "../../tests/support/task_context.ts";
import type { TaskContext } from "../task.ts";
import { calculateIncidentCost } from "./calculate-incident-cost.ts";

test("computes what is due in batches, each incident once, and nothing else", async () => {
  await using database = await createTestDatabase();
  const { db, close } = openDatabase(database.url, 2);
  const clock = new TestClock(new Date("2026-12-01T12:00:00.000Z"));
  await populate(db, clock);
  const kinds = await prepareCosts(db, clock.now(), 2);
  await insertMany(db, kinds, { incidents: 3000, active: 2500 });
  let transactions = 0;
  const context: TaskContext = {
    ...taskContextOf({ db, clock, config: readConfig({}), log: createLog("silent"), plugins: pluginsOf() }),
    transaction: (work) => {
      transactions += 1;
      return db.transaction(work);
    },
  };
  clock.advance(2 * 3600);
  expect(await calculateIncidentCost.run(context)).toEqual({ done: 2500, skipped: 0, failed: 0 });
  expect(transactions).toBe(3);
  const costs = await db.select({ cost: incident.cost, n: count() }).from(incident).groupBy(incident.cost);
  expect(costs.toSorted((a, b) => a.cost - b.cost)).toEqual([
    { cost: 0, n: 500 },
    { cost: 939, n: 2500 },
  ]);
  expect(await db.$count(incident, eq(incident.cost, 0))).toBe(
    await db.$count(incident, ne(incident.status, "Active")),
  );
  expect(await calculateIncidentCost.run(context)).toEqual({ done: 0, skipped: 2500, failed: 0 });
  expect(await db.$count(incidentCost)).toBe(2500);
  await close();
});
