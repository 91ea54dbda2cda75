import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { readConfig } from "../core/config.ts";
import { claimNow } from "../core/schedule/claims.ts";
import { pauseTask } from "../core/schedule/operate.ts";
import { scheduleStatus } from "../core/schedule/status.ts";
import { openDatabase } from "../drizzle/client.ts";
import { accessLease, scheduledTask } from "../drizzle/schema/index.ts";
import { createLog } from "../platform/log.ts";
import { fakeConversation, fakeMailing } from "../plugins/fake/fakes.ts";
import { pluginsOf } from "../plugins/fake/plugins.ts";
import { insertSecond, type Outbox, startOutbox } from "../tests/support/domain/delivery.ts";
import { everySeconds, scheduleOf } from "../tests/support/domain/schedule.ts";
import { valuesOf } from "../tests/support/http/exposition.ts";
import { insertAccess } from "../tests/support/http/permission_access.ts";
import { until } from "../tests/support/process/until.ts";
import { startTestTelemetry, type TestTelemetry } from "../tests/support/telemetry.ts";
import { sendDeliveries } from "./deliveries.ts";
import type { WorkerDeps } from "./deps.ts";
import { cached, ObservedSchedule } from "./metrics.ts";
import { runClaim } from "./run.ts";
import type { ScheduledTask } from "./task.ts";
import { DatabaseTime } from "./time.ts";

let outbox: Outbox;
beforeAll(async () => {
  outbox = await startOutbox();
});
afterAll(() => outbox[Symbol.asyncDispose]());
beforeEach(async () => {
  await outbox.empty();
  await outbox.db.execute(sql`truncate run, run_fault, scheduled_task cascade`);
});

/** A worker with metrics. */
function watched({ telemetry }: TestTelemetry, plugins = pluginsOf()): WorkerDeps {
  const { db, clock } = outbox;
  const time = new DatabaseTime();
  time.observe(clock.now(), performance.now(), performance.now());
  const schedule = () => scheduleOf(db, clock, "a");
  return {
    schedule,
    db: () => db,
    reopen: () => {},
    time,
    plugins,
    config: { ...readConfig({}), databaseUrl: outbox.url },
    log: createLog("silent"),
    observed: new ObservedSchedule(telemetry, { schedule }),
  };
}

const never = new AbortController().signal;

async function doing(deps: WorkerDeps, run: ScheduledTask["run"], giveUp = never, timeoutSeconds = 60) {
  const definition = everySeconds("tested", 3600, timeoutSeconds);
  const claim = await claimNow(deps.schedule(), definition);
  const outcome = await runClaim(deps, { definition, task: { run } }, claim, giveUp);
  await outbox.db.execute(sql`truncate run, run_fault cascade`);
  return outcome.state;
}

test("runs are counted by state, and items by outcome", async () => {
  await using started = await startTestTelemetry();
  const deps = watched(started);
  const result = { done: 3, skipped: 2, failed: 1 };
  for (const _ of [1, 2]) expect(await doing(deps, async () => result)).toBe("Done");
  const throws = async () => {
    throw new Error("x");
  };
  expect(await doing(deps, throws)).toBe("Failed");
  expect(await doing(deps, () => new Promise(() => {}), never, 0.01)).toBe("Failed");
  expect(await doing(deps, () => new Promise(() => {}), AbortSignal.abort())).toBe("given_back");
  const families = await started.scrape();
  const runs = (state: string) => valuesOf(families, "svc_schedule_runs_total", { task: "tested", state });
  expect([runs("done"), runs("failed"), runs("given_back")]).toEqual([[2], [2], [1]]);
  expect(valuesOf(families, "svc_schedule_run_duration_seconds_count", { task: "tested" })).toEqual([5]);
  const items = (outcome: string) => valuesOf(families, "svc_schedule_items_total", { outcome });
  expect([items("done"), items("skipped"), items("failed")]).toEqual([[6], [4], [2]]);
});

describe("the schedule's metrics", () => {
  test("match `svc scheduler status`", async () => {
    await using started = await startTestTelemetry();
    const deps = watched(started);
    const { clock } = outbox;
    const since = new Date(clock.now().getTime() - 2.5 * 3600 * 1000);
    await outbox.db.insert(scheduledTask).values({ name: "term-sync", since });
    const context = deps.schedule();
    await pauseTask({ ...context, clock }, "application-sync");
    const status = await scheduleStatus(context);
    const families = await started.scrape();
    for (const { name: task, lagSeconds, pausedAt, failures } of status.tasks) {
      expect(valuesOf(families, "svc_schedule_lag_seconds", { task })).toEqual([lagSeconds]);
      expect(valuesOf(families, "svc_schedule_paused", { task })).toEqual([pausedAt ? 1 : 0]);
      expect(valuesOf(families, "svc_schedule_failures", { task })).toEqual([failures]);
    }
    expect(valuesOf(families, "svc_schedule_lag_seconds", { task: "term-sync" })[0]).toBeGreaterThan(1000);
    expect(valuesOf(families, "svc_schedule_paused", { task: "application-sync" })).toEqual([1]);
    expect(valuesOf(families, "svc_schedule_workers")).toEqual([0]);
  });

  test("are left out while the database is unavailable; other metrics remain", async () => {
    await using started = await startTestTelemetry();
    const closed = openDatabase(outbox.url, 1);
    await closed.close();
    new ObservedSchedule(started.telemetry, { schedule: () => scheduleOf(closed.db, outbox.clock, "a") });
    const families = await started.scrape();
    expect(valuesOf(families, "svc_schedule_lag_seconds")).toEqual([]);
    expect(valuesOf(families, "svc_deliveries")).toEqual([]);
    expect(valuesOf(families, "process_resident_memory_bytes")).toHaveLength(1);
  });

  test("are queried at most once in ten seconds", async () => {
    let now = 0;
    let asked = 0;
    let down = false;
    const ask = cached(
      async () => {
        asked += 1;
        if (down) throw new Error("down");
        return asked;
      },
      () => now,
    );
    expect(await Promise.all([ask(), ask()])).toEqual([1, 1]);
    now = 9999;
    expect(await ask()).toBe(1);
    now = 10_000;
    down = true;
    expect([await ask(), await ask(), asked]).toEqual([undefined, undefined, 2]);
    now = 20_000;
    down = false;
    expect(await ask()).toBe(3);
  });
});

test("leases are counted by state, and those whose revocation keeps failing", async () => {
  await using started = await startTestTelemetry();
  const { db } = outbox;
  await insertAccess(db, "counted");
  const [lease] = await db.select().from(accessLease);
  const { id: _, ...issuing } = lease!;
  const active = { ...issuing, state: "Active" as const, issuedAt: issuing.createdAt };
  const revoking = { ...active, state: "Revoking" as const };
  const ended = { ...revoking, state: "Revoked" as const, finishedAt: issuing.createdAt };
  const named = [active, active, { ...revoking, attempts: 4 }, { ...revoking, attempts: 5 }, ended];
  await db.insert(accessLease).values(named.map((row, at) => ({ ...row, name: `svc_counted_${at}` })));
  watched(started, pluginsOf());
  const families = await started.scrape();
  const states = ["issuing", "active", "revoking"].map((state) =>
    valuesOf(families, "svc_leases", { state }),
  );
  expect(states).toEqual([[1], [2], [2]]);
  expect(valuesOf(families, "svc_leases")).toHaveLength(3);
  expect(valuesOf(families, "svc_leases_stuck")).toEqual([1]);
});

test("deliveries are counted by state, and attempts by outcome", async () => {
  await using started = await startTestTelemetry();
  const refuse = () => {
    throw new Error("x");
  };
  const channel = fakeConversation({ direct: [() => {}, refuse] }, { slug: "channel" });
  const deps = watched(started, pluginsOf(channel));
  const stop = new AbortController();
  const whom = { incidentId: outbox.ids.incidentId, individualId: outbox.ids.alice };
  const outgoing = (what: string) => ({
    key: { task: "t", what, whom: "0" },
    ...whom,
    message: { subject: "s", text: "t" },
  });
  await outbox.deliver(deps.plugins, outgoing("a"), outgoing("b"));
  const mail = fakeMailing({ recipients: () => ["x", "y"], send: () => {} }, { slug: "mail" });
  const incidentId = await insertSecond(outbox, {}, ["mail"]);
  const others = watched(started, pluginsOf(channel, mail));
  await outbox.deliver(others.plugins, { ...outgoing("c"), incidentId, individualId: undefined });
  const working = sendDeliveries(others, stop.signal, { poll: 0.5 });
  await until("all were tried", () => channel.calls.length === 2 && mail.to("send").length === 2);
  stop.abort();
  await working;
  expect(await others.observed!.delivery(async () => "given_back")).toBe("given_back");
  const families = await started.scrape();
  const states = ["queued", "dead", "done"].map((state) => valuesOf(families, "svc_deliveries", { state }));
  expect(states).toEqual([[1], [0], []]);
  const attempts = (outcome: string) => valuesOf(families, "svc_delivery_attempts_total", { outcome });
  const outcomes = ["done", "again", "split", "given_back"];
  expect(outcomes.map(attempts)).toEqual([[3], [1], [1], [1]]);
});

test("attempts to revoke leases are timed by outcome", async () => {
  await using started = await startTestTelemetry();
  const deps = watched(started);
  for (const outcome of ["done", "again", "given_back"] as const)
    expect(await deps.observed!.revocation(async () => outcome)).toBe(outcome);
  const families = await started.scrape();
  const attempts = (outcome: string) =>
    valuesOf(families, "svc_lease_revoke_duration_seconds_count", { outcome });
  expect(["done", "again", "given_back"].map(attempts)).toEqual([[1], [1], [1]]);
});
