import { beforeEach, describe, expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { auditLog, run, scheduledTask, worker } from "../../drizzle/schema/index.ts";
import { systemClock } from "../../platform/clock.ts";
import { fakeConversation } from "../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../plugins/fake/plugins.ts";
import { TestClock } from "../../tests/support/clock.ts";
import { useDatabase } from "../../tests/support/database/database.ts";
import { startOutbox } from "../../tests/support/domain/delivery.ts";
import { scheduleOf } from "../../tests/support/domain/schedule.ts";
import { databaseClock } from "../database_clock.ts";
import { type Claim, claimDue, claimNow } from "./claims.ts";
import { beat } from "./heartbeat.ts";
import { pauseTask, readAhead, rewind } from "./operate.ts";
import { extendRun, finishRun } from "./runs.ts";
import { nextSlot } from "./slots.ts";
import { laggards, scheduleStatus } from "./status.ts";
import { findTask, scheduledTasks, type TaskName } from "./tasks.ts";

const client = useDatabase(4);
let clock: TestClock;
const day = 86_400;
const as = (owner = "a") => ({ ...scheduleOf(client.db, clock, owner), clock });
const nothing = { done: 0, skipped: 0, failed: 0 };

/** Runs whatever is due now, as a worker does. */
async function runDue(): Promise<TaskName[]> {
  const ran: TaskName[] = [];
  for (const task of scheduledTasks) {
    const answer = await claimDue(as(), task, clock.now());
    if (!("claim" in answer)) continue;
    await finishRun(as(), answer.claim, { result: nothing, faults: [] });
    ran.push(task.name);
  }
  return ran;
}
/** The tasks that are due again within the hour. */
const periodic = scheduledTasks.filter(({ timing }) => "every" in timing).map(({ name }) => name);
const statusOf = async (name: TaskName) =>
  (await scheduleStatus(as())).tasks.find((one) => one.name === name)!;
const nextOf = async (name: TaskName) => (await statusOf(name)).next;

beforeEach(async () => {
  await client.db.execute(sql`truncate run, scheduled_task, worker, audit_log cascade`);
  clock = new TestClock(new Date("2026-12-01T10:00:10.000Z"));
  await runDue();
  clock.advance(3600);
  expect(await runDue()).toEqual(periodic);
});

/** Moves the clock a day ahead for a while, and runs all that is due. Daily tasks may have missed their slots. */
async function jump(): Promise<void> {
  clock.advance(day);
  expect((await runDue()).filter((name) => periodic.includes(name))).toEqual(periodic);
  clock.advance(60 - day);
  await beat(as(), { host: "here", pid: 1 });
}

describe("after the database's clock was a day ahead", () => {
  test("nothing runs until that time, and the status shows the next slot that will run", async () => {
    await jump();
    for (const { name, timing } of scheduledTasks) {
      const { next } = await statusOf(name);
      expect(next).toEqual(nextSlot(timing, "UTC", new Date("2026-12-02T11:00:10.000Z")));
      expect(next!.getTime()).toBeGreaterThan(clock.now().getTime() + 0.9 * day * 1000);
    }
    expect(laggards(await scheduleStatus(as()))).toContain(
      "term-sync is stalled: the database's clock was ahead (svc scheduler rewind)",
    );
    clock.advance(7 * 3600);
    expect(await runDue()).toEqual([]);
  });

  test("after a rewind every task runs at its next slot, and each slot once", async () => {
    await jump();
    expect(await readAhead(as())).toMatchObject({
      now: clock.now(),
      runs: scheduledTasks.length,
      waits: false,
    });
    expect(await rewind(as())).toBe(scheduledTasks.length);
    for (const { name, timing } of scheduledTasks)
      expect(await nextOf(name)).toEqual(nextSlot(timing, "UTC", clock.now()));
    expect(laggards(await scheduleStatus(as()))).toEqual([]);
    expect(await readAhead(as())).toMatchObject({ runs: 0, lastSlot: null, waits: false });
    const ran: TaskName[] = [];
    // A day in half hours.
    for (let half = 0; half < 48; half += 1) {
      clock.advance(1800);
      ran.push(...(await runDue()));
    }
    const counts = Object.fromEntries(
      [...Map.groupBy(ran, (name) => name)].map(([name, of]) => [name, of.length]),
    );
    const slotsOfDay = scheduledTasks.map(({ name, timing }) => [
      name,
      "every" in timing ? Math.min(day / timing.every, 48) : 1,
    ]);
    expect(counts).toEqual(Object.fromEntries(slotsOfDay));
    expect(await client.db.$count(auditLog)).toBe(1);
  });

  test("a rewind ends the leases of dead workers that last too long", async () => {
    const [sync, cost] = [findTask("term-sync")!, findTask("calculate-incident-cost")!];
    const before = await claimNow(as("dead"), cost);
    clock.advance(day);
    await extendRun(as("dead"), before).catch(() => {});
    await client.db.execute(
      sql`update run set lease_until = ${new Date(clock.now().getTime() + 30_000).toISOString()}::timestamptz where state = 'Running'`,
    );
    const answer = (await claimDue(as("dead"), sync)) as { claim: Claim };
    expect(answer.claim.slot).toEqual(new Date("2026-12-02T11:00:00.000Z"));
    await beat(as("dead"), { host: "there", pid: 2 });
    clock.advance(60 - day);
    expect((await nextOf("term-sync"))!.getTime()).toBeGreaterThan(clock.now().getTime() + 0.9 * day * 1000);
    expect((await nextOf("calculate-incident-cost"))!.getTime()).toBeGreaterThan(
      clock.now().getTime() + 0.9 * day * 1000,
    );
    expect(await readAhead(as())).toMatchObject({ runs: 1, waits: true });
    await rewind(as());
    expect(await finishRun(as("dead"), answer.claim, { faults: [] })).toBe(false);
    expect(await client.db.$count(worker)).toBe(0);
    expect(await claimDue(as(), cost)).toMatchObject({ claim: { slot: before.slot, attempt: 2 } });
    clock.advance(3600);
    expect(await claimDue(as(), sync)).toMatchObject({
      claim: { slot: new Date("2026-12-01T12:00:00.000Z") },
    });
  });

  test("a task that was first seen or resumed meanwhile is due from now on", async () => {
    await client.db.delete(scheduledTask);
    await client.db.delete(run);
    clock.advance(day);
    await runDue();
    await pauseTask(as(), "term-sync");
    clock.advance(-day);
    expect(await readAhead(as())).toMatchObject({ runs: 0, waits: true });
    await rewind(as());
    clock.advance(3600);
    expect(await runDue()).toHaveLength(periodic.length - 1);
    const { state, next, pausedAt } = await statusOf("term-sync");
    expect({ state, next }).toEqual({ state: "paused", next: null });
    expect(pausedAt!.getTime()).toBeLessThan(clock.now().getTime());
  });

  test("a rewind changes nothing if nothing is ahead", async () => {
    const before = await client.db.select().from(run).orderBy(run.task, run.slot);
    expect(await readAhead(as())).toMatchObject({ runs: 0, waits: false });
    expect(await rewind(as())).toBe(0);
    expect(await client.db.select().from(run).orderBy(run.task, run.slot)).toEqual(before);
  });
});

test("sign-ins and revocations of that time are brought back, and sign-ins stay in order", async () => {
  const { db } = client;
  await db.execute(sql`
    insert into token (jti, user_name, groups, issued_at, expires_at)
    select gen_random_uuid(), who, array[said], now() + ahead * interval '1 hour', now() + interval '2 days'
    from (values ('ann', 'first', 23), ('ann', 'last', 24), ('bea', 'before', -1), ('bea', 'now', 0))
      as given (who, said, ahead)`);
  await db.execute(sql`
    with role as (
      insert into access_role (slug, description, plugin_slug, settings, groups, default_duration, max_duration, approval,
        incident_required, break_glass, created_at, updated_at)
      values ('r', 'x', 'x', '{}', '{}', 60, 60, 'none', false, false, now(), now()) returning id)
    insert into access_lease (role_id, user_name, token_id, name, state, created_at, issued_at, expires_at,
      max_expires_at, due_at)
    select role.id, 'ann', (select jti from token limit 1), state, state, now(), now(), now(), now(), now() + interval '1 day'
    from role, (values ('Revoking'), ('Active')) as given (state)`);
  const context = { db, databaseClock, config: { timezone: "UTC" }, clock: systemClock };
  expect((await readAhead(context)).waits).toBe(true);
  await rewind(context);
  expect((await readAhead(context)).waits).toBe(false);
  const newest = await db.execute(sql`
    select distinct on (user_name) user_name as user, groups, issued_at <= clock_timestamp() as past from token
    order by user_name, issued_at desc`);
  expect([...newest]).toEqual([
    { user: "ann", groups: ["last"], past: true },
    { user: "bea", groups: ["now"], past: true },
  ]);
  const due = await db.execute(
    sql`select state, due_at <= clock_timestamp() as due from access_lease order by state`,
  );
  // An active lease is due when it expires.
  expect([...due]).toEqual([
    { state: "Active", due: false },
    { state: "Revoking", due: true },
  ]);
  await db.execute(sql`truncate access_lease, access_role, token cascade`);
});

test("durable work that waits for that time is retried now, and dead workers' attempts are found", async () => {
  await using outbox = await startOutbox();
  const { db, ids } = outbox;
  const plugins = pluginsOf(fakeConversation({}, { slug: "channel" }));
  await outbox.deliver(
    plugins,
    ...["waits", "tried", "soon"].map((whom) => ({
      key: { task: "t", what: "w", whom },
      incidentId: ids.incidentId,
      message: { subject: "s", text: "t" },
    })),
  );
  const [ahead, soon] = [sql`now() + interval '1 day'`, sql`now() + interval '30 minutes'`];
  await db.execute(sql`update delivery set due_at = ${ahead} where key like 't/w/waits/%'`);
  await db.execute(sql`update delivery set due_at = ${soon} where key like 't/w/soon/%'`);
  await db.execute(
    sql`update delivery set due_at = ${ahead}, lease_until = ${ahead} where key like 't/w/tried/%'`,
  );
  await db.execute(sql`
    insert into flow_step (incident_id, step, state, due_at, lease_until, error)
    select ${ids.incidentId}, step, state, ${ahead}, case when state = 'Running' then ${ahead} end, 'x'
    from (values ('a', 'Running'), ('b', 'Failed')) as ahead (step, state)`);
  const context = { db, databaseClock, config: { timezone: "UTC" }, clock: systemClock };
  expect((await readAhead(context)).waits).toBe(true);
  await rewind(context);
  expect((await readAhead(context)).waits).toBe(false);
  const left = await db.execute<{ whom: string; state: string; waits: boolean }>(sql`
    select split_part(key, '/', 3) as whom, state, greatest(due_at, lease_until) > clock_timestamp() as waits
    from delivery
    union all select step, state, greatest(due_at, lease_until) > clock_timestamp() from flow_step
    where step in ('a', 'b') order by 1`);
  expect([...left]).toEqual([
    { whom: "a", state: "Pending", waits: false },
    { whom: "b", state: "Failed", waits: false },
    { whom: "soon", state: "Queued", waits: true },
    { whom: "tried", state: "Queued", waits: false },
    { whom: "waits", state: "Queued", waits: false },
  ]);
});
