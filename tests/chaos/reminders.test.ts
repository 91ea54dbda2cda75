import { expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { claimDue } from "../../core/schedule/claims.ts";
import { finishRun, whileHeld } from "../../core/schedule/runs.ts";
import { findTask } from "../../core/schedule/tasks.ts";
import { incidentPriority, run, statusReport, statusReportReminder } from "../../drizzle/schema/index.ts";
import { fakeConversation } from "../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../plugins/fake/plugins.ts";
import { incidentStatusReportReminder as task } from "../../worker/tasks/incident-status-report-reminder.ts";
import { at, insertSecond, startOutbox } from "../support/domain/delivery.ts";
import { numbers } from "../support/domain/numbers.ts";
import { scheduleOf } from "../support/domain/schedule.ts";
import { effort } from "../support/effort.ts";

const days = effort(8);
/** The worker dies three times a day, in slots and ways from this sequence. */
const deaths = ["before its work", "in its transaction", "before it says that it is done"] as const;
const plugins = pluginsOf(fakeConversation({}, { slug: "channel" }));

test("over many days with three restarts each, every reminder is queued once", async () => {
  await using outbox = await startOutbox();
  const { db, clock } = outbox;
  const below = numbers(1);
  const incidents = [{ id: outbox.ids.incidentId, hours: 2 }];
  for (const hours of [6, 12, 24]) {
    const [priority] = await db
      .insert(incidentPriority)
      .values({ name: `every ${hours} h`, reminderHours: hours, createdAt: at, updatedAt: at })
      .returning();
    for (let i = 0; i < 3; i += 1)
      incidents.push({ id: await insertSecond(outbox, { incidentPriorityId: priority!.id }), hours });
  }
  await db.delete(statusReport);
  await db.delete(statusReportReminder);
  const definition = findTask("incident-status-report-reminder")!;
  let [owner, restarts] = [0, 0];
  const schedule = () => scheduleOf(db, clock, `worker ${owner}`);
  await claimDue(schedule(), definition);
  for (let hour = 1; hour <= days * 24; hour += 1) {
    clock.advance((at.getTime() + hour * 3_600_000 - clock.now().getTime()) / 1000);
    let dies = hour % 8 === below(8) || hour % 8 === 0 ? deaths[below(3)] : undefined;
    for (;;) {
      const claimed = await claimDue(schedule(), definition);
      if (!("claim" in claimed)) break;
      const { claim } = claimed;
      const ended = await (
        dies === "before its work"
          ? Promise.reject(new Error(dies))
          : outbox.run(task, plugins, {
              slot: claim.slot,
              transaction: (work) =>
                whileHeld(schedule(), claim, 60, async (tx) => {
                  const value = await work(tx);
                  if (dies === "in its transaction") throw new Error(dies);
                  return value;
                }),
            })
      ).catch((error) => {
        if (error.message !== dies) throw error;
      });
      if (dies) {
        // Another worker takes over when the lease has expired.
        [dies, owner, restarts] = [undefined, owner + 1, restarts + 1];
        clock.advance(31 + below(1800));
        continue;
      }
      await finishRun(schedule(), claim, { result: ended!.result, faults: [] });
    }
  }
  expect(restarts).toBeGreaterThanOrEqual(3 * days);
  const noted = await db.select().from(statusReportReminder);
  for (const { id, hours } of incidents) {
    const ks = noted.filter(({ incidentId }) => incidentId === id).map(({ k }) => k);
    const all = Array.from({ length: (days * 24) / hours }, (_, i) => i + 1);
    expect(ks.toSorted((a, b) => a - b)).toEqual(all);
  }
  const sent = await outbox.all();
  expect(sent).toHaveLength(noted.length);
  expect(sent.every(({ attempts }) => attempts === 0)).toBe(true);
  // Nobody sends them, so each one has replaced the one before it.
  for (const [, its] of Map.groupBy(sent, ({ incidentId }) => incidentId)) {
    const inOrder = its.toSorted((a, b) => a.sequence! - b.sequence!).map(({ state }) => state);
    expect(inOrder).toEqual([...Array(its.length - 1).fill("Obsolete"), "Queued"]);
  }
  expect(await db.$count(run, eq(run.state, "Done"))).toBe(days * 24);
}, 120_000);
