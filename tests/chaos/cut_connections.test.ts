import { expect, test } from "bun:test";
import { and, eq, isNotNull, sql } from "drizzle-orm";
import type { TaskName } from "../../core/schedule/tasks.ts";
import {
  delivery,
  document,
  individual,
  participant,
  run,
  scheduledTask,
} from "../../drizzle/schema/index.ts";
import { after } from "../../platform/clock.ts";
import { fakeConversation, fakeDocument } from "../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../plugins/fake/plugins.ts";
import { Connections } from "../../worker/connections.ts";
import { worksOf } from "../../worker/tasks/index.ts";
import { DatabaseTime } from "../../worker/time.ts";
import { work } from "../../worker/worker.ts";
import { type Outbox, startOutbox } from "../support/domain/delivery.ts";
import { runningClock } from "../support/domain/schedule.ts";
import { effort } from "../support/effort.ts";
import { until } from "../support/process/until.ts";

/**
 * All connections of the workers are cut in the middle of a daily run, which still completes, once. These tests mostly
 * wait, so they run concurrently.
 */

/** Makes PostgreSQL end every connection to this database the first few times that a row is written to the table. */
async function cutAtFirst(outbox: Outbox, table: string, times: number): Promise<void> {
  await outbox.db.execute(
    sql.raw(`
    create sequence cuts;
    create function cut() returns trigger language plpgsql as $$
      begin
        if nextval('cuts') <= ${times} then
          perform pg_terminate_backend(pid) from pg_stat_activity
            where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid();
          perform pg_terminate_backend(pg_backend_pid());
        end if;
        return new;
      end $$;
    create trigger cut before insert or update on ${table} for each row execute function cut()`),
  );
}

/** Two workers with separate connections, from shortly after the task's slot until its run has ended. */
async function runSlot(outbox: Outbox, task: TaskName, slot: Date, plugins: ReturnType<typeof pluginsOf>) {
  const { db, url } = outbox;
  const clock = runningClock(after(slot, 1));
  await db.insert(scheduledTask).values({ name: task, since: after(slot, -1) });
  const stop = new AbortController();
  const pools = [
    new Connections({ url, poolSize: 4, prepare: true }),
    new Connections({ url, poolSize: 4, prepare: true }),
  ];
  const working = pools.map((connections, at) =>
    work(
      {
        ...outbox.context(plugins),
        time: new DatabaseTime(),
        db: () => connections.db,
        reopen: () => connections.reopen(),
        schedule: () => ({
          db: connections.schedule,
          databaseClock: clock,
          config: { timezone: "UTC" },
          owner: `worker-${at}`,
          leaseSeconds: 30,
        }),
      },
      worksOf(task),
      stop.signal,
    ),
  );
  const ended = async () => {
    const [last] = await db
      .select()
      .from(run)
      .where(eq(run.task, task))
      .catch(() => []);
    return last && last.state !== "Running" ? last : undefined;
  };
  await until("the run to end", async () => (await ended()) !== undefined, 60);
  stop.abort();
  await Promise.all(working);
  await Promise.all(pools.map((connections) => connections.close()));
  return (await ended())!;
}

const people = effort(500);

test.concurrent(
  "the daily summary reaches everyone, each once",
  async () => {
    await using outbox = await startOutbox();
    const { db, ids } = outbox;
    const at = new Date("2026-12-01T18:00:00.000Z");
    const others = await db
      .insert(individual)
      .values(
        Array.from({ length: people - 2 }, (_, i) => ({
          name: `person ${i}`,
          email: `person-${i}@example.com`,
          createdAt: at,
          updatedAt: at,
        })),
      )
      .returning({ id: individual.id });
    await db
      .insert(participant)
      .values(others.map(({ id }) => ({ incidentId: ids.incidentId, individualId: id, joinedAt: at })));
    await cutAtFirst(outbox, "delivery", 3);
    const ended = await runSlot(
      outbox,
      "incident-daily-summary",
      at,
      pluginsOf(fakeConversation({}, { slug: "channel" })),
    );
    expect(ended).toMatchObject({ state: "Done", error: null });
    expect(ended.attempt).toBeGreaterThan(1);
    expect(ended.result.retries!.count).toBe(ended.attempt - 1);
    const sent = await db.select({ to: delivery.individualId }).from(delivery);
    expect(sent).toHaveLength(people);
    expect(new Set(sent.map(({ to }) => to)).size).toBe(people);
  },
  120_000,
);

test.concurrent(
  "document-term-sync reads every document",
  async () => {
    await using outbox = await startOutbox();
    const { db } = outbox;
    const at = new Date("2026-12-02T00:00:00.000Z");
    await db.insert(document).values(
      Array.from({ length: 60 }, (_, i) => ({
        name: `note ${i}`,
        resourceType: "note",
        resourceId: `note-${i}`,
        pluginSlug: "wiki",
        createdAt: at,
        updatedAt: at,
      })),
    );
    await cutAtFirst(outbox, "document", 2);
    const wiki = fakeDocument({ text: () => ({ text: "a credential leak" }) }, { slug: "wiki" });
    const ended = await runSlot(outbox, "document-term-sync", at, pluginsOf(wiki));
    expect(ended).toMatchObject({ state: "Done" });
    expect(ended.attempt).toBeGreaterThan(1);
    expect(
      await db.$count(document, and(eq(document.pluginSlug, "wiki"), isNotNull(document.termVocabulary))),
    ).toBe(60);
  },
  120_000,
);
