import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { eq, sql } from "drizzle-orm";
import fc from "fast-check";
import { type OverdueTask, overdueMessage } from "../../core/incident/task/overdue_message.ts";
import { rewind } from "../../core/schedule/operate.ts";
import { conversation, incident, individual, task, taskAssignee } from "../../drizzle/schema/index.ts";
import { fakeConversation } from "../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../plugins/fake/plugins.ts";
import { noteAsked, rowsRead } from "../../tests/support/database/statements.ts";
import {
  addParticipant,
  at,
  insertSecond,
  type Outbox,
  startOutbox,
} from "../../tests/support/domain/delivery.ts";
import { scheduleOf } from "../../tests/support/domain/schedule.ts";
import { incidentTaskReminders } from "./incident-task-reminders.ts";

const plugins = pluginsOf(fakeConversation({}, { slug: "channel" }));

describe("the message", () => {
  const one = (id: number, name = "INC-7"): OverdueTask => ({
    id,
    description: `Free disk ${id}`,
    resolveBy: at,
    incident: { name, title: "Disk full" },
  });
  const words = { publicUrl: "https://svc.example.com", timezone: "UTC" };

  test("names each task, its incident, its due time and its URL", () => {
    expect(overdueMessage([one(1), one(2)], words)).toEqual({
      subject: "INC-7: 2 tasks of yours are overdue",
      text: `These tasks are overdue. Set those that are done to Resolved, and change the due time of the rest:

- Free disk 1 (INC-7: Disk full), due 2026-12-01 12:00 UTC
  https://svc.example.com/tasks/1
- Free disk 2 (INC-7: Disk full), due 2026-12-01 12:00 UTC
  https://svc.example.com/tasks/2`,
    });
    expect(overdueMessage([one(1), one(2, "INC-8")], words).subject).toBe("2 tasks of yours are overdue");
  });

  test("uses the singular for one task, and the schedule's time zone", () => {
    expect(overdueMessage([one(1)], { ...words, timezone: "Asia/Kathmandu" })).toEqual({
      subject: "INC-7: a task of yours is overdue",
      text: `This task is overdue. Set it to Resolved if it is done, or change its due time:

- Free disk 1 (INC-7: Disk full), due 2026-12-01 17:45 Asia/Kathmandu
  https://svc.example.com/tasks/1`,
    });
  });

  test("is at most a page long with a one-line subject, whatever the tasks contain", () => {
    const tasks = fc.array(fc.string({ unit: "binary", maxLength: 400 }), { minLength: 1, maxLength: 80 });
    fc.assert(
      fc.property(tasks, (texts) => {
        const { subject, text } = overdueMessage(
          texts.map((description, i) => ({ ...one(i), description })),
          words,
        );
        expect(subject).not.toMatch(/[\r\n]/);
        expect(text.match(/\/tasks\/\d+$/gm)).toHaveLength(Math.min(50, texts.length));
        expect(text.includes(`And ${texts.length - 50} more.`)).toBe(texts.length > 50);
      }),
    );
  });
});

describe("the task", () => {
  let outbox: Outbox;
  let second: number;
  beforeAll(async () => {
    outbox = await startOutbox();
    second = await insertSecond(outbox);
  });
  afterAll(() => outbox[Symbol.asyncDispose]());
  const daySeconds = 24 * 3600;
  /** A day later, nothing is due. */
  beforeEach(async () => {
    await outbox.empty();
    await outbox.db.delete(taskAssignee);
    await outbox.db.delete(task);
    await outbox.db.update(incident).set({ status: "Active", visibility: "Open", stableAt: null });
    outbox.clock.advance(daySeconds);
  });
  const run = () => outbox.run(incidentTaskReminders, plugins);
  const add = async (values: Partial<typeof task.$inferInsert> = {}, ...assignees: number[]) => {
    const { incidentId, documentId } = outbox.ids;
    const [row] = await outbox.db
      .insert(task)
      .values({
        incidentId,
        description: "Free some",
        resolveBy: at,
        createdAt: at,
        updatedAt: at,
        documentId,
        externalId: crypto.randomUUID(),
        ...values,
      })
      .returning({ id: task.id });
    for (const individualId of assignees)
      await outbox.db.insert(taskAssignee).values({ taskId: row!.id, individualId });
    return row!.id;
  };
  const remindedAt = async (id: number) =>
    (await outbox.db.select().from(task).where(eq(task.id, id)))[0]!.lastReminderAt;
  const messages = async () =>
    (await outbox.all()).map(({ individualId, text }) => [
      individualId,
      [...text.matchAll(/\/tasks\/(\d+)/g)].map(([, id]) => Number(id)),
    ]);

  test("sends each assignee one message with all their overdue tasks", async () => {
    const { alice, bob } = outbox.ids;
    const both = await add({}, alice, bob);
    const hers = await add({ incidentId: second, documentId: null, externalId: null }, alice);
    expect((await run()).result).toEqual({ done: 2, skipped: 0, failed: 0 });
    expect((await messages()).toSorted()).toEqual([
      [alice, [both, hers]],
      [bob, [both]],
    ]);
    expect(await remindedAt(both)).toEqual(outbox.clock.now());
    const [{ about } = { about: [] }] = (await outbox.all()).filter((row) => row.individualId === alice);
    expect(about).toEqual([outbox.ids.incidentId, second]);
  });

  test("a reminder sent while the clock was two days ahead is due again a day after the clock is set back", async () => {
    const { db, clock, ids } = outbox;
    await add({}, ids.alice);
    clock.advance(2 * daySeconds);
    expect((await run()).result.done).toBe(1);
    clock.advance(-2 * daySeconds);
    await rewind({ ...scheduleOf(db, clock, "a"), clock });
    clock.advance(3600);
    expect((await run()).result.done).toBe(0);
    clock.advance(daySeconds - 3600);
    expect((await run()).result.done).toBe(1);
  });

  test("lists the oldest first, and keeps tasks of one incident together", async () => {
    const { alice: ownerId } = outbox.ids;
    const other = { incidentId: second, documentId: null, externalId: null, ownerId };
    const [third, first, fourth, old] = [
      await add(other),
      await add({ ownerId }),
      await add(other),
      await add({ ...other, resolveBy: new Date(at.getTime() - 1) }),
    ];
    const next = await add({ ownerId });
    await run();
    expect(await messages()).toEqual([[ownerId, [old, first, next, third, fourth]]]);
  });

  test("goes to the owner if nobody is assigned; a task without an owner causes none", async () => {
    const { alice, bob } = outbox.ids;
    await add({ ownerId: alice }, bob);
    const hers = await add({ ownerId: alice });
    await add();
    await run();
    expect((await messages()).filter(([who]) => who === alice)).toEqual([[alice, [hers]]]);
    expect(await outbox.all()).toHaveLength(2);
  });

  test("repeats after a day, and not before", async () => {
    const id = await add({ ownerId: outbox.ids.alice });
    await run();
    outbox.clock.advance(daySeconds - 1);
    expect((await run()).result.done).toBe(0);
    outbox.clock.advance(1);
    expect((await run()).result.done).toBe(1);
    expect(await outbox.all()).toHaveLength(2);
    expect(await remindedAt(id)).toEqual(outbox.clock.now());
  });

  test.each<[string, Partial<typeof task.$inferInsert>]>([
    ["resolved", { status: "Resolved", resolvedAt: at }],
    ["cancelled", { status: "Cancelled" }],
    ["gone from its document", { deletedAt: at }],
    ["without reminders", { reminders: false }],
    ["not due yet", { resolveBy: new Date("2030-01-01T00:00:00Z") }],
  ])("sends none for a task that is %s", async (_, values) => {
    await add({ ownerId: outbox.ids.alice, ...values });
    expect((await run()).result).toEqual({ done: 0, skipped: 0, failed: 0 });
  });

  test("sends none for an incident that is not Active", async () => {
    await add({ ownerId: outbox.ids.alice });
    await outbox.db.update(incident).set({ status: "Stable", stableAt: at });
    expect((await run()).result.done).toBe(0);
  });

  test("mentions a Restricted incident to its participants only, in a separate message", async () => {
    const { alice, incidentId } = outbox.ids;
    const [carol] = await outbox.db
      .insert(individual)
      .values({ name: "carol", email: "carol@example.com", createdAt: at, updatedAt: at })
      .returning();
    await outbox.db.update(incident).set({ visibility: "Restricted" }).where(eq(incident.id, incidentId));
    const hidden = await add({}, alice, carol!.id);
    const open = await add({ incidentId: second, documentId: null, externalId: null }, alice, carol!.id);
    const { result, faults } = await run();
    expect(result).toEqual({ done: 3, skipped: 0, failed: 1 });
    expect(faults[0]).toContain("Does not participate in this Restricted incident");
    expect((await messages()).toSorted()).toEqual([
      [alice, [hidden]],
      [alice, [open]],
      [carol!.id, [open]],
    ]);
    const rows = await outbox.all();
    expect(rows.map(({ incidentId, about }) => about.join() === String(incidentId))).toEqual([
      true,
      true,
      true,
    ]);
    expect(rows.some((row) => row.incidentId === incidentId)).toBe(true);
  });

  test("an unreachable person is a fault, and their tasks are retried", async () => {
    const id = await add({ ownerId: outbox.ids.alice });
    await outbox.db.update(conversation).set({ archivedAt: at });
    expect((await run()).faults[0]).toContain("no open conversation");
    expect(await remindedAt(id)).toBeNull();
    await outbox.db.update(conversation).set({ archivedAt: null });
    expect((await run()).result.done).toBe(1);
  });

  test("a resumed run reminds the remaining people, and nobody twice", async () => {
    const { alice, bob } = outbox.ids;
    const slot = outbox.clock.now();
    await add({}, alice, bob);
    const { remindOfTasks } = await import("../../core/incident/task/remind.ts");
    await outbox.db.transaction((tx) => remindOfTasks(tx, { ...outbox.context(plugins), slot }, [alice]));
    expect(await outbox.all()).toHaveLength(1);
    await Promise.all([
      outbox.run(incidentTaskReminders, plugins, { slot }),
      outbox.run(incidentTaskReminders, plugins, { slot }),
    ]);
    expect((await messages()).map(([who]) => who).toSorted()).toEqual([alice, bob].toSorted());
  });

  test("a task that becomes overdue before the run resumes is recorded only if a message mentions it", async () => {
    const { alice } = outbox.ids;
    const slot = outbox.clock.now();
    const told = await add({ ownerId: alice });
    await outbox.run(incidentTaskReminders, plugins, { slot });
    const late = await add({ ownerId: alice });
    expect((await outbox.run(incidentTaskReminders, plugins, { slot })).result).toEqual({
      done: 0,
      skipped: 1,
      failed: 0,
    });
    expect(await remindedAt(late)).toBeNull();
    outbox.clock.advance(3600);
    expect((await run()).result.done).toBe(1);
    expect(await messages()).toEqual([
      [alice, [told]],
      [alice, [late]],
    ]);
  });

  test("a run resumed a day later uses the latest slot, which reminds nobody again", async () => {
    const { alice } = outbox.ids;
    const interrupted = outbox.clock.now();
    const id = await add({ ownerId: alice });
    outbox.clock.advance(30 * 3600 + 600);
    const latest = new Date(interrupted.getTime() + 30 * 3_600_000);
    for (const slot of [interrupted, latest]) await outbox.run(incidentTaskReminders, plugins, { slot });
    expect(await messages()).toEqual([[alice, [id]]]);
    expect(await remindedAt(id)).toEqual(latest);
    outbox.clock.advance(-600);
  });

  test("statistics from when no incident was Active do not make it compare all tasks with all incidents", async () => {
    const { db, ids } = outbox;
    await db.update(incident).set({ status: "Stable", stableAt: at });
    for (let i = 0; i < 3; i += 1) await add({ status: "Resolved", resolvedAt: at }, ids.alice);
    await db.execute(sql`analyze incident, task, task_assignee`);
    await db.execute(sql`
      with made as (
        insert into incident (title, description, incident_type_id, incident_priority_id, reported_at, created_at, updated_at)
        select 'Disk full', '', ${ids.incidentTypeId}, ${ids.incidentPriorityId}, now(), now(), now() from generate_series(1, 1000)
        returning id)
      insert into task (incident_id, description, owner_id, resolve_by, created_at, updated_at)
      select id, 'Free some', ${ids.alice}, ${at.toISOString()}::timestamptz, now(), now() from made, generate_series(1, 3)`);
    const asked = noteAsked(db);
    await run();
    const reading = asked.filter(({ text }) => /^select .* from "task"/.test(text));
    expect(reading.length).toBe(2);
    for (const one of reading) expect(await rowsRead(db, one)).toBeLessThan(50_000);
    await db.delete(task);
    await db.execute(sql`delete from incident where id not in (${ids.incidentId}, ${second})`);
  });

  test("handles more people than fit in a batch", async () => {
    const people = await outbox.db
      .insert(individual)
      .values(
        Array.from({ length: 450 }, (_, i) => ({
          name: `p${i}`,
          email: `p${i}@example.com`,
          createdAt: at,
          updatedAt: at,
        })),
      )
      .returning({ id: individual.id });
    for (const { id } of people) await add({ ownerId: id });
    expect((await run()).result.done).toBe(450);
    expect(await outbox.db.$count(task, sql`last_reminder_at is null`)).toBe(0);
  });

  test("no longer mentions a Restricted incident's tasks to participants who have left", async () => {
    const { bob, incidentId } = outbox.ids;
    await outbox.db.update(incident).set({ visibility: "Restricted" });
    await add({ incidentId: second, documentId: null, externalId: null }, bob);
    expect((await run()).result).toEqual({ done: 0, skipped: 0, failed: 1 });
    await addParticipant(outbox, second, bob);
    expect((await run()).result.done).toBe(1);
    await outbox.db.execute(sql`update participant set left_at = now() where incident_id <> ${incidentId}`);
    outbox.clock.advance(daySeconds);
    expect((await run()).result).toEqual({ done: 0, skipped: 0, failed: 1 });
  });
});
