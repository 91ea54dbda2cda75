import { afterAll, beforeAll, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { participantRole } from "../../../drizzle/schema/index.ts";
import { at, type Outbox, startOutbox } from "../../../tests/support/domain/delivery.ts";
import { readListed } from "./listed.ts";

let outbox: Outbox;
beforeAll(async () => {
  outbox = await startOutbox();
});
afterAll(() => outbox[Symbol.asyncDispose]());

const commander = async () => {
  const [listed] = await readListed(outbox.db, { since: at, until: at }, undefined, 1);
  return listed!.commander;
};

test("a summary names the current commander, or nobody", async () => {
  const { db, ids } = outbox;
  expect(await commander()).toBe("alice");
  await db
    .update(participantRole)
    .set({ renouncedAt: at })
    .where(eq(participantRole.participantId, ids.commander));
  expect(await commander()).toBeNull();
  const { incidentId, reporter: participantId } = ids;
  await db.insert(participantRole).values({ participantId, incidentId, role: "commander", assumedAt: at });
  expect(await commander()).toBe("bob");
});
