import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { auditLog, delivery } from "../../drizzle/schema/index.ts";
import { Conflict } from "../../platform/errors.ts";
import { fakeConversation } from "../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../plugins/fake/plugins.ts";
import { somebodyWaits } from "../../tests/support/database/blocked.ts";
import { at, type Outbox, startOutbox } from "../../tests/support/domain/delivery.ts";
import { resendAllDead, resendDelivery } from "./resend.ts";

let outbox: Outbox;
beforeAll(async () => {
  outbox = await startOutbox();
});
afterAll(() => outbox[Symbol.asyncDispose]());

/** Two dead deliveries. */
beforeEach(async () => {
  await outbox.empty();
  await outbox.db.delete(auditLog);
  await outbox.deliver(
    pluginsOf(fakeConversation({}, { slug: "channel" })),
    ...["a", "b"].map((whom) => ({
      key: { task: "t", what: "w", whom },
      incidentId: outbox.ids.incidentId,
      message: { subject: "s", text: "t" },
    })),
  );
  await outbox.db.update(delivery).set({ state: "Dead", dueAt: null, finishedAt: at, error: "x" });
});

/** Runs it twice concurrently: both have begun before either can continue. */
async function twice<T>(resend: () => Promise<T>): Promise<PromiseSettledResult<T>[]> {
  const { db } = outbox;
  const both = await db.transaction(async (tx) => {
    await tx.select().from(delivery).orderBy(delivery.key).for("update");
    const begun = Promise.allSettled([resend(), resend()]);
    await somebodyWaits(db, 2);
    return { begun };
  });
  return both.begun;
}

const resent = () => outbox.db.$count(auditLog, eq(auditLog.action, "delivery.resent"));

test("of two concurrent resends of a delivery, one succeeds", async () => {
  const ends = await twice(() => resendDelivery(outbox, "t/w/a/channel"));
  expect(ends.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  expect(ends.find(({ status }) => status === "rejected")).toMatchObject({ reason: expect.any(Conflict) });
  expect(await resent()).toBe(1);
});

test("two concurrent resends of everything send each delivery once", async () => {
  const ends = await twice(() => resendAllDead(outbox));
  const counts = ends.map((end) => (end.status === "fulfilled" ? end.value : Number.NaN));
  expect(counts[0]! + counts[1]!).toBe(2);
  expect(await resent()).toBe(2);
});
