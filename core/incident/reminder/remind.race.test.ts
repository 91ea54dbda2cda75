import { afterAll, beforeAll, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { incident, statusReport } from "../../../drizzle/schema/index.ts";
import { fakeConversation } from "../../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../../plugins/fake/plugins.ts";
import { inTheWay } from "../../../tests/support/database/blocked.ts";
import { at, insertSecond, type Outbox, startOutbox } from "../../../tests/support/domain/delivery.ts";
import { lockIncident } from "../incident/lock.ts";
import { remind } from "./remind.ts";

let outbox: Outbox;
beforeAll(async () => {
  outbox = await startOutbox();
});
afterAll(() => outbox[Symbol.asyncDispose]());

test("sends no reminder for an incident that is becoming Stable", async () => {
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

test("sends no reminder for an incident whose report is being written", async () => {
  const { db, clock, ids } = outbox;
  const context = outbox.context(pluginsOf(fakeConversation({}, { slug: "channel" })));
  clock.advance(24 * 3600);
  const [reminded] = await inTheWay(
    db,
    async (tx) => {
      await lockIncident(tx, "worker", ids.incidentId);
      const words = { conditions: "Full", actions: "", needs: "" };
      const { incidentId, alice: authorId } = ids;
      await tx.insert(statusReport).values({ incidentId, authorId, ...words, createdAt: clock.now() });
    },
    () => db.transaction((tx) => remind(tx, context, [ids.incidentId])),
  );
  expect(reminded).toMatchObject({ status: "fulfilled", value: { done: 0, faults: [] } });
});

test("an incident reopened while another is locked is left to the next run", async () => {
  const { db, clock, ids } = outbox;
  const context = outbox.context(pluginsOf(fakeConversation({}, { slug: "channel" })));
  const second = await insertSecond(outbox, { status: "Stable", stableAt: at });
  clock.advance(24 * 3600);
  await outbox.empty();
  const both = () => db.transaction((tx) => remind(tx, context, [ids.incidentId, second]));
  const told = async () => (await outbox.all()).map(({ incidentId }) => incidentId);
  const [reminded] = await inTheWay(
    db,
    async (tx) => {
      await lockIncident(tx, "worker", ids.incidentId);
      await tx.update(incident).set({ status: "Active", stableAt: null }).where(eq(incident.id, second));
    },
    both,
  );
  expect(reminded).toMatchObject({ status: "fulfilled", value: { done: 1, faults: [] } });
  expect(await told()).toEqual([ids.incidentId]);
  expect(await both()).toMatchObject({ done: 1 });
  expect((await told()).toSorted()).toEqual([ids.incidentId, second].toSorted());
});
