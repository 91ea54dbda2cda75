import { afterAll, beforeAll, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { task } from "../../drizzle/schema/index.ts";
import { fakeConversation } from "../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../plugins/fake/plugins.ts";
import { inTheWay } from "../../tests/support/blocked.ts";
import { at, type Outbox, startOutbox } from "../../tests/support/delivery.ts";
import { after } from "../clock.ts";
import { remindOfTasks } from "./remind.ts";

let outbox: Outbox;
beforeAll(async () => {
  outbox = await startOutbox();
});
afterAll(() => outbox[Symbol.asyncDispose]());

test("nobody is reminded of a task that is being resolved", async () => {
  const { db, ids } = outbox;
  const context = {
    ...outbox.context(pluginsOf(fakeConversation({}, { slug: "channel" }))),
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
