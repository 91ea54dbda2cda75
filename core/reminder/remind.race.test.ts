import { afterAll, beforeAll, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { incident } from "../../drizzle/schema/index.ts";
import { fakeConversation } from "../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../plugins/fake/plugins.ts";
import { inTheWay } from "../../tests/support/blocked.ts";
import { at, type Outbox, startOutbox } from "../../tests/support/delivery.ts";
import { remind } from "./remind.ts";

let outbox: Outbox;
beforeAll(async () => {
  outbox = await startOutbox();
});
afterAll(() => outbox[Symbol.asyncDispose]());

test("no report is asked for of an incident that is becoming Stable", async () => {
  const { db, clock, ids } = outbox;
  const context = outbox.context(pluginsOf(fakeConversation({}, { slug: "channel" })));
  clock.advance(5 * 3600);
  const [reminded] = await inTheWay(
    db,
    (tx) =>
      tx.update(incident).set({ status: "Stable", stableAt: at }).where(eq(incident.id, ids.incidentId)),
    () => db.transaction((tx) => remind(tx, context, [ids.incidentId])),
  );
  expect(reminded).toMatchObject({ status: "fulfilled", value: { done: 0, faults: [] } });
  expect(await outbox.all()).toEqual([]);
  await db.update(incident).set({ status: "Active", stableAt: null });
  expect(await db.transaction((tx) => remind(tx, context, [ids.incidentId]))).toMatchObject({ done: 1 });
});
