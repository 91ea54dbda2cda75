import { afterAll, beforeAll, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { task, taskAssignee } from "../../../drizzle/schema/index.ts";
import { after } from "../../../platform/clock.ts";
import { fakeConversation } from "../../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../../plugins/fake/plugins.ts";
import { inTheWay } from "../../../tests/support/database/blocked.ts";
import { at, type Outbox, startOutbox } from "../../../tests/support/domain/delivery.ts";
import { remindOfTasks } from "./remind.ts";

const channel = fakeConversation({}, { slug: "channel" });
let outbox: Outbox;
beforeAll(async () => {
  outbox = await startOutbox();
});
afterAll(() => outbox[Symbol.asyncDispose]());

test("nobody is reminded of a task that is being resolved", async () => {
  const { db, ids } = outbox;
  const context = {
    ...outbox.context(pluginsOf(channel)),
    slot: after(at, 3600),
  };
  const [reminded] = await inTheWay(
    db,
    (tx) => tx.update(task).set({ status: "Resolved", resolvedAt: at }).where(eq(task.id, ids.taskId)),
    () => db.transaction((tx) => remindOfTasks(tx, context, [ids.bob])),
  );
  expect(reminded).toEqual({ status: "fulfilled", value: { done: 0, skipped: 0, faults: [] } });
  expect(await outbox.all()).toEqual([]);
  await db.update(task).set({ status: "Open", resolvedAt: null });
  expect(await db.transaction((tx) => remindOfTasks(tx, context, [ids.bob]))).toMatchObject({ done: 1 });
});

test("a task that was just reassigned reminds only its new assignee", async () => {
  const { db, ids } = outbox;
  const context = { ...outbox.context(pluginsOf(channel)), slot: after(at, 3 * 24 * 3600) };
  const [reminded] = await inTheWay(
    db,
    async (tx) => {
      await tx.update(task).set({ version: 2 }).where(eq(task.id, ids.taskId));
      await tx
        .update(taskAssignee)
        .set({ individualId: ids.alice })
        .where(eq(taskAssignee.taskId, ids.taskId));
    },
    () => db.transaction((tx) => remindOfTasks(tx, context, [ids.bob])),
  );
  expect(reminded).toMatchObject({ status: "fulfilled", value: { done: 0 } });
  expect(await db.transaction((tx) => remindOfTasks(tx, context, [ids.alice]))).toMatchObject({ done: 1 });
});

test("a task assigned while another is locked is left to the next slot", async () => {
  const { db, ids } = outbox;
  const slot = after(at, 6 * 24 * 3600);
  const { id: _, search: __, ...like } = (await db.select().from(task).where(eq(task.id, ids.taskId)))[0]!;
  const other = { ...like, description: "Buy disks", externalId: "2", lastReminderAt: null };
  const [second] = await db.insert(task).values(other).returning({ id: task.id });
  await db.update(taskAssignee).set({ individualId: ids.bob });
  await db.insert(taskAssignee).values({ taskId: second!.id, individualId: ids.alice });
  await outbox.empty();
  const remindBob = (of: Date) =>
    db.transaction((tx) => remindOfTasks(tx, { ...outbox.context(pluginsOf(channel)), slot: of }, [ids.bob]));
  const told = async () => (await outbox.all()).map(({ text }) => text.match(/Free some|Buy disks/g));
  const [reminded] = await inTheWay(
    db,
    async (tx) => {
      await tx.update(task).set({ version: 3 });
      await tx.update(taskAssignee).set({ individualId: ids.bob }).where(eq(taskAssignee.taskId, second!.id));
    },
    () => remindBob(slot),
  );
  expect(reminded).toMatchObject({ status: "fulfilled", value: { done: 1 } });
  expect(await told()).toEqual([["Free some"]]);
  expect(await remindBob(after(slot, 3600))).toMatchObject({ done: 1 });
  expect(await told()).toEqual([["Free some"], ["Buy disks"]]);
});
