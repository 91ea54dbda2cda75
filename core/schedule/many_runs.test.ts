import { beforeAll, describe, expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import type { Sql } from "../../drizzle/client.ts";
import { run } from "../../drizzle/schema/index.ts";
import { useDatabase } from "../../tests/support/database/database.ts";
import { noteAsked } from "../../tests/support/database/statements.ts";
import { databaseClock } from "../database_clock.ts";
import { cleanUp } from "./clean.ts";
import { scheduleStatus } from "./status.ts";

const client = useDatabase(2);
const kept = 60_000;
const old = 2500;
const context = () => ({ db: client.db, databaseClock, config: { timezone: "UTC" } });

/** Inserts failed runs of a task, 30 s apart, the last of them this long ago. */
const insertRuns = (task: string, count: number, ago: string) =>
  client.db.execute(sql`
    insert into run (task, slot, state, trigger, owner, started_at, finished_at, error)
    select ${task}, at, 'Failed', 'schedule', 'a', at, at, 'no answer' from (
      select date_trunc('second', now()) - ${ago}::interval - i * interval '30 s' as at
      from generate_series(1, ${count}::int) as i
    ) as runs`);

beforeAll(async () => {
  await client.db.execute(
    sql`insert into scheduled_task (name, since) values ('term-sync', now()), ('incident-task-sync', now())`,
  );
  await insertRuns("incident-task-sync", kept, "2 days");
  await insertRuns("term-sync", old, "40 days");
  await client.db.execute(sql`vacuum analyze run`);
});

test("cleaning up deletes any number of old runs, but the last of each task and recent ones stay", async () => {
  await cleanUp(context());
  const rows = await client.db
    .select({ task: run.task, count: sql<number>`count(*)::int` })
    .from(run)
    .groupBy(run.task)
    .orderBy(run.task);
  expect(rows).toEqual([
    { task: "incident-task-sync", count: kept },
    { task: "term-sync", count: 1 },
  ]);
  await client.db.execute(sql`vacuum analyze run`);
});

describe("reads only part of the runs:", () => {
  /** How many pages each statement about runs reads. */
  const pagesOf = async (work: () => Promise<unknown>): Promise<number[]> => {
    const asked = noteAsked(client.db);
    await work();
    const { $client } = client.db as typeof client.db & { $client: Sql };
    const pages: number[] = [];
    for (const { text, values } of asked.filter(({ text }) => /"run"/.test(text))) {
      const [row] = await $client.unsafe(`explain (analyze, buffers, format json) ${text}`, [
        ...values,
      ] as []);
      const [{ Plan: plan }] = row!["QUERY PLAN"];
      pages.push(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]);
    }
    return pages;
  };

  test.each([
    ["cleaning up", () => cleanUp(context())],
    ["the schedule's status", () => scheduleStatus(context())],
  ])("%s", async (_, work) => {
    const pages = await pagesOf(work);
    expect(pages.length).toBeGreaterThan(0);
    // All runs together take about 800 pages.
    expect(Math.max(...pages)).toBeLessThan(100);
  });
});
