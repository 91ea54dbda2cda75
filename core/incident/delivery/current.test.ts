import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { and, eq, gt, isNull, max, sql } from "drizzle-orm";
import {
  conversation,
  delivery,
  event,
  incident,
  participantRole,
  statusReport,
  statusReportReminder,
  task,
  taskAssignee,
} from "../../../drizzle/schema/index.ts";
import { Unavailable } from "../../../platform/errors.ts";
import type { Fake } from "../../../plugins/fake/fake.ts";
import { fakeConversation, fakeMailing } from "../../../plugins/fake/fakes.ts";
import { type FakePlugins, pluginsOf } from "../../../plugins/fake/plugins.ts";
import {
  addParticipant,
  attemptAll,
  insertSecond,
  type Outbox,
  startOutbox,
} from "../../../tests/support/domain/delivery.ts";
import { incidentDailySummary } from "../../../worker/tasks/incident-daily-summary.ts";
import { incidentStatusReportReminder } from "../../../worker/tasks/incident-status-report-reminder.ts";
import { incidentTaskReminders } from "../../../worker/tasks/incident-task-reminders.ts";
import { resendAllDead } from "../../outbox/resend.ts";
import { attemptDelivery } from "./attempt.ts";

const hour = 3600;
const day = 24 * hour;

let outbox: Outbox;
let mail: Fake<"conversation">;
let plugins: FakePlugins;
beforeAll(async () => {
  outbox = await startOutbox();
});
afterAll(() => outbox[Symbol.asyncDispose]());
beforeEach(async () => {
  const { db, ids, clock } = outbox;
  await outbox.empty();
  for (const table of [taskAssignee, task, statusReport, statusReportReminder]) await db.delete(table);
  clock.advance(2 * day);
  await db
    .update(incident)
    .set({ status: "Active", visibility: "Open", stableAt: null, closedAt: null, reportedAt: clock.now() })
    .where(eq(incident.id, ids.incidentId));
  mail = fakeConversation({ direct: () => {}, send: () => {} }, { slug: "channel" });
  plugins = pluginsOf(mail);
});

const run = (task: Parameters<Outbox["run"]>[0]) => outbox.run(task, plugins);
const attempt = () => attemptAll(outbox.context(plugins));
const dead = () =>
  outbox.db
    .update(delivery)
    .set({ state: "Dead", dueAt: null, finishedAt: outbox.clock.now(), error: "down" })
    .where(eq(delivery.state, "Queued"));
const ended = () => ({
  status: "Closed" as const,
  stableAt: outbox.clock.now(),
  closedAt: outbox.clock.now(),
});
const states = async () =>
  (await outbox.all()).map(({ state, error }) => (error ? `${state}: ${error}` : state));
const report = (values: Partial<typeof statusReport.$inferInsert> = {}) => {
  const { incidentId, alice } = outbox.ids;
  const text = { conditions: "Full", actions: "Freeing", needs: "" };
  return outbox.db
    .insert(statusReport)
    .values({ incidentId, authorId: alice, ...text, createdAt: outbox.clock.now(), ...values });
};
const change = (values: Partial<typeof incident.$inferInsert>) =>
  outbox.db.update(incident).set(values).where(eq(incident.id, outbox.ids.incidentId));
const sent = () =>
  mail.to("direct").map(({ person, message }) => [person.name, message.subject, message.text]);
const down = () => {
  throw new Unavailable("the server refuses");
};
const reminded = () => outbox.db.select().from(event).where(eq(event.kind, "reminder.sent"));

test("the timeline has a reminder once it is sent, and not one that was dropped", async () => {
  const { clock, ids } = outbox;
  const dropped = await reminded();
  mail.answer({ direct: down });
  clock.advance(2 * hour);
  await run(incidentStatusReportReminder);
  expect(await attempt()).toEqual(["again"]);
  await report();
  expect(await attempt()).toEqual(["obsolete"]);
  expect(await reminded()).toEqual(dropped);
  mail.answer({ direct: () => {} });
  const other = fakeConversation({ direct: () => {} }, { slug: "mail" });
  plugins = pluginsOf(mail, other);
  await outbox.db
    .insert(conversation)
    .values({ incidentId: ids.incidentId, pluginSlug: "mail", createdAt: clock.now() });
  clock.advance(2 * hour);
  await run(incidentStatusReportReminder);
  clock.advance(60);
  expect(await attempt()).toEqual(["done", "done"]);
  const told = (await reminded()).slice(dropped.length);
  expect(told).toMatchObject([
    {
      description: "alice was reminded to write a status report",
      actor: "worker",
      at: clock.now(),
      data: { k: 1, individual_id: ids.alice },
    },
  ]);
  await outbox.db.delete(conversation).where(eq(conversation.pluginSlug, "mail"));
});

test("reminders from a release that did not record what they are about are checked, too", async () => {
  const { clock, ids, db } = outbox;
  const resolveBy = clock.now();
  const stamps = { createdAt: resolveBy, updatedAt: resolveBy };
  const values = ["one", "two"].map((description) => ({
    ...{ incidentId: ids.incidentId, description, resolveBy, ownerId: ids.alice, ...stamps },
  }));
  const tasks = await db.insert(task).values(values).returning();
  clock.advance(2 * hour);
  await run(incidentStatusReportReminder);
  await run(incidentTaskReminders);
  await db.update(delivery).set({ topic: null, sequence: null, occurredAt: null });
  clock.advance(hour);
  await report();
  await db.update(task).set({ status: "Resolved", resolvedAt: clock.now() }).where(eq(task.id, tasks[0]!.id));
  expect((await attempt()).toSorted()).toEqual(["done", "obsolete"]);
  const [[, , text]] = sent() as [[string, string, string]];
  expect([text.includes("- one"), text.includes("- two")]).toEqual([false, true]);
});

test("of a reminder to everyone by mail, the timeline has one event", async () => {
  const { clock, ids, db } = outbox;
  mail = fakeMailing({ recipients: () => ["a", "b"], send: () => {} }, { slug: "channel" });
  plugins = pluginsOf(mail);
  const before = await reminded();
  await db.update(participantRole).set({ renouncedAt: clock.now() });
  clock.advance(2 * hour);
  await run(incidentStatusReportReminder);
  expect(await attempt()).toEqual(["split"]);
  expect(await attempt()).toEqual(["done", "done"]);
  expect((await reminded()).slice(before.length).map(({ description }) => description)).toEqual([
    "Everybody was reminded to write a status report",
  ]);
  await db
    .update(participantRole)
    .set({ renouncedAt: null })
    .where(eq(participantRole.incidentId, ids.incidentId));
});

describe("a reminder of a status report is dropped", () => {
  /** It is due two hours after the report of the incident. */
  beforeEach(async () => {
    outbox.clock.advance(2 * hour);
    expect((await run(incidentStatusReportReminder)).result.done).toBe(1);
    outbox.clock.advance(60);
  });

  test("when a report was written", async () => {
    await report();
    expect(await attempt()).toEqual(["obsolete"]);
    expect(await states()).toEqual(["Obsolete: No status report is due any more"]);
    expect(mail.calls).toEqual([]);
  });

  test.each(["Stable", "Closed"] as const)(
    "when its incident is %s, even with its conversation",
    async (status) => {
      await change({ ...ended(), status, ...(status === "Stable" && { closedAt: null }) });
      await outbox.db.execute(sql`update conversation set archived_at = now()`);
      expect(await attempt()).toEqual(["obsolete"]);
      expect(await states()).toEqual(["Obsolete: Its incident is no longer Active"]);
      await outbox.db.execute(sql`update conversation set archived_at = null`);
    },
  );

  test("when somebody else commands the incident, who is then reminded", async () => {
    const { db, ids } = outbox;
    const command = (from: number, to: number) =>
      db
        .update(participantRole)
        .set({ participantId: to })
        .where(sql`${participantRole.participantId} = ${from} and ${participantRole.role} = 'commander'`);
    await command(ids.commander, ids.reporter);
    expect(await attempt()).toEqual(["obsolete"]);
    expect((await run(incidentStatusReportReminder)).result.done).toBe(1);
    expect(await attempt()).toEqual(["done"]);
    expect(sent()).toEqual([["bob", expect.stringContaining("a status report is due"), expect.anything()]]);
    await command(ids.reporter, ids.commander);
  });

  test("when somebody else commanded the incident for a while, and is sent after all", async () => {
    const { db, clock, ids } = outbox;
    const { id, role, incidentId } = participantRole;
    const command = async (participantId: number) => {
      const held = and(
        eq(incidentId, ids.incidentId),
        eq(role, "commander"),
        isNull(participantRole.renouncedAt),
      );
      await db.update(participantRole).set({ renouncedAt: clock.now() }).where(held);
      const values = { participantId, incidentId: ids.incidentId, role: "commander" as const };
      await db.insert(participantRole).values({ ...values, assumedAt: clock.now() });
    };
    const [last] = await db.select({ id: max(id) }).from(participantRole);
    await command(ids.reporter);
    expect(await attempt()).toEqual(["obsolete"]);
    await command(ids.commander);
    expect((await run(incidentStatusReportReminder)).result.done).toBe(1);
    expect(await attempt()).toEqual(["done"]);
    expect(sent().map(([name]) => name)).toEqual(["alice"]);
    await db.delete(participantRole).where(gt(id, last!.id!));
    await db
      .update(participantRole)
      .set({ renouncedAt: null })
      .where(eq(participantRole.renouncedAt, clock.now()));
  });

  test("when a report was written while each recipient's part waits", async () => {
    await outbox.empty();
    await outbox.db.delete(statusReportReminder);
    await outbox.db.update(participantRole).set({ renouncedAt: outbox.clock.now() });
    mail = fakeMailing({ recipients: () => ["a", "b"], send: [() => {}, down] }, { slug: "channel" });
    plugins = pluginsOf(mail);
    await run(incidentStatusReportReminder);
    expect(await attempt()).toEqual(["split"]);
    expect(await attempt()).toEqual(["done", "again"]);
    await report();
    expect(await attempt()).toEqual(["obsolete"]);
    expect(mail.to("send")).toHaveLength(2);
    await outbox.db.update(participantRole).set({ renouncedAt: null });
  });
});

test("a reminder is written as of the time when it is sent", async () => {
  outbox.clock.advance(2 * hour);
  await run(incidentStatusReportReminder);
  outbox.clock.advance(1.5 * hour);
  await change({ title: "Disk on fire" });
  expect(await attempt()).toEqual(["done"]);
  const [[, , text] = []] = sent();
  expect(text).toContain("Disk on fire");
  expect(text).toContain("since it was reported 3 hours 30 minutes ago");
  await change({ title: "Disk full" });
});

test.each([
  ["queued", () => Promise.resolve()],
  ["dead", dead],
])(
  "after 20 hours without the mail server, one reminder of each kind is left of those that were %s",
  async (_, end) => {
    const { db, ids, clock } = outbox;
    const values = { incidentId: ids.incidentId, createdAt: clock.now(), updatedAt: clock.now() };
    mail.answer({ direct: down });
    for (let passed = 1; passed <= 20; passed += 1) {
      await db
        .insert(task)
        .values({ ...values, description: `Task ${passed}`, ownerId: ids.alice, resolveBy: clock.now() });
      clock.advance(hour);
      await run(incidentStatusReportReminder);
      await run(incidentTaskReminders);
      expect((await states()).filter((state) => !state.startsWith("Obsolete")).length).toBeLessThanOrEqual(2);
      await attempt();
      await end();
    }
    expect(new Set((await states()).filter((state) => state.startsWith("Obsolete")))).toEqual(
      new Set(["Obsolete: A newer one has replaced it"]),
    );
    mail.answer({ direct: () => {} });
    const before = sent().length;
    await resendAllDead(outbox);
    expect(await attempt()).toEqual(["done", "done"]);
    const [one, other] = sent().slice(before);
    expect(one?.[1]).toContain("a status report is due");
    // Each overdue task, although the last slot was only for the last one.
    expect(other?.[2]?.match(/Task \d+/g)).toHaveLength(20);
  },
);

describe("a reminder of tasks", () => {
  const add = async (description: string, ownerId = outbox.ids.alice) => {
    const { db, ids, clock } = outbox;
    const stamps = { createdAt: clock.now(), updatedAt: clock.now() };
    const values = { incidentId: ids.incidentId, description, ownerId, resolveBy: clock.now(), ...stamps };
    const [row] = await db.insert(task).values(values).returning({ id: task.id });
    return row!.id;
  };
  const set = (id: number, values: Partial<typeof task.$inferInsert>) =>
    outbox.db.update(task).set(values).where(eq(task.id, id));

  test("leaves out tasks that were resolved, deleted, postponed, silenced or handed over, and is dropped without any", async () => {
    const { clock, ids } = outbox;
    const all: number[] = [];
    for (const name of ["resolved", "deleted", "postponed", "silenced", "moved", "left"])
      all.push(await add(name));
    clock.advance(hour);
    await run(incidentTaskReminders);
    clock.advance(60);
    await set(all[0]!, { status: "Resolved", resolvedAt: clock.now() });
    await set(all[1]!, { deletedAt: clock.now(), documentId: ids.documentId, externalId: "gone" });
    await set(all[2]!, { resolveBy: new Date(clock.now().getTime() + 1) });
    await set(all[3]!, { reminders: false });
    await set(all[4]!, { ownerId: ids.bob });
    mail.answer({ direct: [down, () => {}] });
    expect(await attempt()).toEqual(["again"]);
    expect(await attempt()).toEqual(["done"]);
    expect(sent()[1]?.[2]?.match(/- \w+/g)).toEqual(["- left"]);
    await outbox.db.update(delivery).set({ state: "Queued", dueAt: clock.now(), finishedAt: null });
    await set(all[5]!, { status: "Cancelled" });
    expect(await attempt()).toEqual(["obsolete"]);
  });

  test("is dropped when its incident is Stable, and leaves out an incident that is Restricted now", async () => {
    const second = await insertSecond(outbox);
    await add("first");
    await set(await add("second"), { incidentId: second });
    outbox.clock.advance(hour);
    await run(incidentTaskReminders);
    await outbox.db.update(incident).set({ visibility: "Restricted" }).where(eq(incident.id, second));
    const [claim] = await outbox.claim();
    expect(await attemptDelivery(outbox.context(plugins), claim!)).toBe("done");
    expect(sent()[0]?.[2]).not.toContain("second");
    await outbox.db.update(delivery).set({ state: "Queued", dueAt: outbox.clock.now(), finishedAt: null });
    await change({ status: "Stable", stableAt: outbox.clock.now() });
    expect(await attempt()).toEqual(["obsolete"]);
    await outbox.db
      .update(incident)
      .set({ visibility: "Open", ...ended() })
      .where(eq(incident.id, second));
  });

  test("that fails after a newer one was queued is dropped, and the newer one has its tasks", async () => {
    await add("first");
    outbox.clock.advance(hour);
    await run(incidentTaskReminders);
    const meanwhile = async () => {
      await add("second");
      outbox.clock.advance(1);
      await run(incidentTaskReminders);
      throw new Unavailable("the server refuses");
    };
    mail.answer({ direct: [meanwhile, () => {}] });
    expect(await attempt()).toEqual(["again"]);
    expect(await attempt()).toEqual(["obsolete", "done"]);
    expect(sent().at(-1)?.[2]?.match(/- \w+/g)?.sort()).toEqual(["- first", "- second"]);
  });
});

describe("the daily summary", () => {
  test("says what is true when it is sent", async () => {
    await run(incidentDailySummary);
    outbox.clock.advance(3 * hour);
    await change(ended());
    mail.answer({ direct: () => {} });
    expect(await attempt()).toEqual(["done", "done"]);
    for (const [, subject, text] of sent()) {
      expect(subject).toMatch(/^Incidents on .*: 0 active, 1 stable or closed since/);
      expect(text).toContain("Active: none.");
      expect(text).toContain("(Closed,");
    }
  });

  test("of the next day replaces one that was not sent, and covers its period", async () => {
    const { clock } = outbox;
    await run(incidentDailySummary);
    const begin = (await outbox.all())[0]!.occurredAt;
    await dead();
    await change({ status: "Stable", stableAt: clock.now() });
    const second = await insertSecond(outbox, { status: "Active", stableAt: null });
    await addParticipant(outbox, second, outbox.ids.alice);
    clock.advance(3 * day);
    await run(incidentDailySummary);
    const waiting = (await outbox.all()).filter(({ state }) => state === "Queued");
    expect(waiting.map(({ occurredAt }) => occurredAt)).toEqual([begin]);
    expect(await attempt()).toEqual(["done"]);
    expect(sent()[0]?.[1]).toContain("1 active, 1 stable or closed since");
    await outbox.db.update(incident).set(ended()).where(eq(incident.id, second));
  });

  test("is not sent through an incident that has become Restricted", async () => {
    await run(incidentDailySummary);
    const second = await insertSecond(outbox, { status: "Active", stableAt: null });
    await change({ visibility: "Restricted" });
    expect(await attempt()).toEqual(["dead", "dead"]);
    await outbox.db.update(incident).set(ended()).where(eq(incident.id, second));
  });
});

test("a run that is repeated replaces nothing", async () => {
  outbox.clock.advance(2 * hour);
  await run(incidentStatusReportReminder);
  await run(incidentDailySummary);
  const before = await outbox.all();
  await outbox.db.delete(statusReportReminder);
  await run(incidentStatusReportReminder);
  await run(incidentDailySummary);
  expect(await outbox.all()).toEqual(before);
});
