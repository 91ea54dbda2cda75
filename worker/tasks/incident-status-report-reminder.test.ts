import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { eq, sql } from "drizzle-orm";
import fc from "fast-check";
import { dueReminder, reminderMessage } from "../../core/incident/reminder/remind.ts";
import { rewind } from "../../core/schedule/operate.ts";
import {
  conversation,
  incident,
  incidentPriority,
  participant,
  participantRole,
  statusReport,
  statusReportReminder,
} from "../../drizzle/schema/index.ts";
import { fakeConversation } from "../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../plugins/fake/plugins.ts";
import {
  addParticipant,
  at,
  insertSecond,
  type Outbox,
  startOutbox,
} from "../../tests/support/domain/delivery.ts";
import { scheduleOf } from "../../tests/support/domain/schedule.ts";
import { incidentStatusReportReminder } from "./incident-status-report-reminder.ts";

const hour = 3_600_000;
const plugins = pluginsOf(fakeConversation({}, { slug: "channel" }));

describe("which reminder is due", () => {
  test.each([
    [0, 2, 0],
    [1.99, 2, 0],
    [2, 2, 1],
    [3.99, 2, 1],
    [50, 2, 25],
    [23.9, 24, 0],
    [-5, 2, 0],
  ])("%p h after the anchor, with a reminder every %p h: number %p", (passed, hours, k) => {
    expect(dueReminder(at, hours, new Date(at.getTime() + passed * hour))).toBe(k);
  });

  test("it is the latest one whose time has come", () => {
    fc.assert(
      fc.property(fc.nat(10_000 * hour), fc.integer({ min: 1, max: 200 }), (passed, hours) => {
        const k = dueReminder(at, hours, new Date(at.getTime() + passed));
        expect(k * hours * hour).toBeLessThanOrEqual(passed);
        expect((k + 1) * hours * hour).toBeGreaterThan(passed);
      }),
    );
  });
});

describe("which reminder is due after the priority's interval has changed", () => {
  const after = (hours: number) => new Date(at.getTime() + hours * hour);
  test.each([
    // Longer interval: the next reminder may have a smaller number than the last one sent.
    [3, 6, 6, 11.9, 0],
    [3, 6, 6, 12, 4],
    // Shorter interval: the time of the last one now has a different number.
    [1, 6, 2, 7.9, 0],
    [1, 6, 2, 8, 4],
    // It was sent late.
    [1, 7, 2, 7.9, 0],
    [1, 8, 2, 8.5, 0],
  ])("number %p sent after %p h, then every %p h: after %p h, number %p", (lastK, sent, hours, passed, k) => {
    expect(dueReminder(at, hours, after(passed), { k: lastK, at: after(sent) })).toBe(k);
  });

  test("each is due once, and none is skipped", () => {
    const step = fc.record({ hours: fc.integer({ min: 1, max: 24 }), slots: fc.nat(30) });
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 8 }), (steps) => {
        let [now, last] = [0, undefined as { k: number; at: Date } | undefined];
        for (const { hours, slots } of steps) {
          for (const end = now + slots; now < end;) {
            now += 1;
            const k = dueReminder(at, hours, after(now), last);
            const isDue =
              Math.floor(now / hours) * hours > (last ? (last.at.getTime() - at.getTime()) / hour : 0);
            expect(k > 0).toBe(isDue);
            if (k === 0) continue;
            expect(k).toBeGreaterThan(last?.k ?? 0);
            last = { k, at: after(now) };
          }
        }
      }),
    );
  });
});

test("the message says what is due, how to write it, and where", () => {
  const due = {
    incident: { id: 7, name: "INC-7", title: "Disk *full*" },
    priority: "High",
    anchor: at,
    hasReport: true,
  };
  const words = { now: new Date(at.getTime() + 2.5 * hour), publicUrl: "https://svc.example.com" };
  expect(reminderMessage(due, words)).toEqual({
    subject: "INC-7: a status report is due",
    text: `**INC-7: Disk \\*full\\*** (priority High) is Active, and its last status report is 2 hours 30 minutes old.

Report the current state: what is happening (conditions), what is being done (actions), what is missing (needs):

POST https://svc.example.com/incidents/7/reports
{"conditions": "...", "actions": "...", "needs": "..."}

https://svc.example.com/incidents/7`,
  });
  expect(reminderMessage({ ...due, hasReport: false }, words).text).toContain(
    "has had no status report since it was reported 2 hours 30 minutes ago.",
  );
});

describe("the task", () => {
  let outbox: Outbox;
  beforeAll(async () => {
    outbox = await startOutbox();
  });
  afterAll(() => outbox[Symbol.asyncDispose]());
  /** At noon, one Active incident, just reported and with a report due every two hours. */
  beforeEach(async () => {
    const { db, ids, clock } = outbox;
    await outbox.empty();
    await db.execute(sql`truncate status_report_reminder`);
    await db.delete(incident).where(sql`id <> ${ids.incidentId}`);
    await db.delete(statusReport).where(sql`created_at <> ${at.toISOString()}`);
    clock.advance((at.getTime() - clock.now().getTime()) / 1000);
  });
  const run = () => outbox.run(incidentStatusReportReminder, plugins);
  const noted = () => outbox.db.select().from(statusReportReminder).orderBy(statusReportReminder.k);

  test("sends nothing before a report is due, then one reminder to the commander", async () => {
    outbox.clock.advance(2 * 3600 - 1);
    expect(await run()).toEqual({ result: { done: 0, skipped: 1, failed: 0 }, faults: [] });
    outbox.clock.advance(1);
    expect((await run()).result).toEqual({ done: 1, skipped: 0, failed: 0 });
    const { incidentId, alice } = outbox.ids;
    expect(await noted()).toEqual([{ incidentId, anchor: at, k: 1, remindedAt: outbox.clock.now() }]);
    expect(await outbox.all()).toMatchObject([
      { individualId: alice, incidentId, about: [incidentId], task: "incident-status-report-reminder" },
    ]);
    expect((await run()).result).toEqual({ done: 0, skipped: 1, failed: 0 });
    outbox.clock.advance(2 * 3600);
    expect((await run()).result.done).toBe(1);
    expect(await outbox.all()).toHaveLength(2);
  });

  test("sends one reminder after a time without a worker, not one per missed slot", async () => {
    outbox.clock.advance(9 * 3600);
    expect((await run()).result.done).toBe(1);
    expect((await noted()).map(({ k }) => k)).toEqual([4]);
    expect((await run()).result.done).toBe(0);
    outbox.clock.advance(3600);
    expect((await run()).result.done).toBe(1);
    expect((await noted()).map(({ k }) => k)).toEqual([4, 5]);
  });

  test("a locked incident is postponed, and does not delay the others", async () => {
    const { db, ids, clock } = outbox;
    for (let i = 0; i < 10; i += 1) await insertSecond(outbox);
    clock.advance(2 * 3600);
    const [held, end] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const other = db.transaction(async (tx) => {
      await tx.select().from(incident).where(eq(incident.id, ids.incidentId)).for("update");
      held.resolve();
      await end.promise;
    });
    await held.promise;
    const postponed: string[] = [];
    const postpone = (item: string) => void postponed.push(item);
    const { result, faults } = await outbox.run(incidentStatusReportReminder, plugins, { postpone });
    expect({ result, faults }).toEqual({ result: { done: 10, skipped: 0, failed: 1 }, faults: [] });
    expect(postponed).toEqual([`incident ${ids.incidentId}`]);
    end.resolve();
    await other;
    expect((await run()).result).toEqual({ done: 1, skipped: 10, failed: 0 });
  }, 60_000);

  test("continues at its next slot after the clock was a day ahead and set back", async () => {
    const { db, clock } = outbox;
    clock.advance(86_400);
    expect((await run()).result.done).toBe(1);
    clock.advance(3600 - 86_400);
    const schedule = { ...scheduleOf(db, clock, "a"), clock };
    clock.advance(3600);
    expect((await run()).result.done).toBe(0);
    await rewind(schedule);
    expect((await run()).result.done).toBe(0);
    clock.advance(2 * 3600);
    expect((await run()).result.done).toBe(1);
    expect((await noted()).map(({ k }) => k)).toEqual([12, 13]);
  });

  test("follows a changed priority interval at once", async () => {
    const { db, clock } = outbox;
    const everyHours = (reminderHours: number) => db.update(incidentPriority).set({ reminderHours });
    clock.advance(10 * 3600);
    expect((await run()).result.done).toBe(1);
    await everyHours(6);
    clock.advance(2 * 3600 - 1);
    expect((await run()).result.done).toBe(0);
    clock.advance(1);
    expect((await run()).result.done).toBe(1);
    expect((await run()).result.done).toBe(0);
    expect((await noted()).map(({ k }) => k)).toEqual([5, 6]);
    expect(await outbox.all()).toHaveLength(2);
    await everyHours(2);
  });

  test("a report restarts the interval", async () => {
    const { db, clock, ids } = outbox;
    clock.advance(2 * 3600);
    const { incidentId, alice: authorId } = ids;
    const texts = { conditions: "a", actions: "b", needs: "c" };
    await db.insert(statusReport).values({ incidentId, authorId, ...texts, createdAt: clock.now() });
    expect((await run()).result.done).toBe(0);
    clock.advance(2 * 3600);
    expect((await run()).result.done).toBe(1);
    expect(await noted()).toMatchObject([{ anchor: new Date(at.getTime() + 2 * hour), k: 1 }]);
  });

  test("goes to the liaison if there is no commander, otherwise to the conversation", async () => {
    const { db, clock, ids } = outbox;
    const other = await insertSecond(outbox);
    const liaison = await addParticipant(outbox, other, ids.bob, "liaison");
    clock.advance(2 * 3600);
    await run();
    const whom = async () =>
      (await outbox.all()).filter((row) => row.incidentId === other).map((row) => row.individualId);
    expect(await whom()).toEqual([ids.bob]);
    await db.update(participant).set({ leftAt: at }).where(eq(participant.id, liaison));
    await outbox.empty();
    clock.advance(2 * 3600);
    await run();
    expect(await whom()).toEqual([null]);
    await db.update(participant).set({ leftAt: null }).where(eq(participant.id, liaison));
    await db
      .update(participantRole)
      .set({ renouncedAt: at })
      .where(eq(participantRole.participantId, liaison));
    await outbox.empty();
    clock.advance(2 * 3600);
    await run();
    expect(await whom()).toEqual([null]);
  });

  test("goes to the commander rather than the liaison; a later commander is not reminded again", async () => {
    const { alice, bob } = outbox.ids;
    const other = await insertSecond(outbox);
    await addParticipant(outbox, other, bob, "liaison");
    const commander = await addParticipant(outbox, other, alice, "commander");
    outbox.clock.advance(2 * 3600);
    await run();
    const whom = async () =>
      (await outbox.all()).filter((row) => row.incidentId === other).map((row) => row.individualId);
    expect(await whom()).toEqual([alice]);
    const { participantId } = participantRole;
    await outbox.db.update(participantRole).set({ renouncedAt: at }).where(eq(participantId, commander));
    await run();
    expect(await whom()).toEqual([alice]);
  });

  test("covers Active incidents only", async () => {
    await insertSecond(outbox, { status: "Stable", stableAt: at });
    outbox.clock.advance(2 * 3600);
    expect((await run()).result).toEqual({ done: 1, skipped: 0, failed: 0 });
  });

  test("an unreachable recipient is a fault; the reminder is not recorded, and is retried", async () => {
    const other = await insertSecond(outbox, {}, []);
    const [{ name } = { name: "" }] = await outbox.db.select().from(incident).where(eq(incident.id, other));
    outbox.clock.advance(2 * 3600);
    expect(await run()).toEqual({
      result: { done: 1, skipped: 0, failed: 1 },
      faults: [`${name}: It has no open conversation to send a reminder to`],
    });
    await outbox.db.insert(conversation).values({ incidentId: other, pluginSlug: "channel", createdAt: at });
    expect((await run()).result).toEqual({ done: 1, skipped: 1, failed: 0 });
  });

  test("an incident that fails is a fault; the others of its batch are reminded", async () => {
    const other = await insertSecond(outbox);
    outbox.clock.advance(2 * 3600);
    await outbox.db.execute(
      sql.raw(`
      create function refuse() returns trigger language plpgsql as
        $$ begin if new.incident_id = ${other} then raise exception 'hunter2'; end if; return new; end $$;
      create trigger refuse before insert on delivery for each row execute function refuse()`),
    );
    expect(await run()).toEqual({
      result: { done: 1, skipped: 0, failed: 1 },
      faults: [`incident ${other}: Unexpected error; see the worker's log`],
    });
    await outbox.db.execute(sql`drop function refuse cascade`);
    expect((await run()).result).toEqual({ done: 1, skipped: 1, failed: 0 });
  });
});
