import { and, asc, eq, gt, inArray, sql } from "drizzle-orm";
import type { Database, Transaction } from "../../drizzle/client.ts";
import { delivery } from "../../drizzle/schema/index.ts";
import type { Clock } from "../../platform/clock.ts";
import { Conflict, NotFound } from "../../platform/errors.ts";
import { audit } from "../audit.ts";
import { discardedReason } from "./deliver.ts";
import { dueNow } from "./work.ts";

/** `by` is the user who asks for it on a page, for the audit log. */
type ResendContext = { db: Database; clock: Clock; by?: string };

const batch = 500;

/** Changes dead deliveries, whose rows are locked. */
type Change = (tx: Transaction, context: ResendContext, keys: readonly string[]) => Promise<void>;

/**
 * Resets the attempts of a dead delivery.
 * @throws NotFound @throws Conflict when it is not dead
 */
export function resendDelivery(context: ResendContext, key: string): Promise<void> {
  return changeDead(context, key, { change: revive, changed: "sent again" });
}

/**
 * Gives up a dead delivery: it is Done, and its error says why it was not sent.
 * @throws NotFound @throws Conflict when it is not dead
 */
export function discardDelivery(context: ResendContext, key: string): Promise<void> {
  return changeDead(context, key, { change: discard, changed: "discarded" });
}

/** Resets the attempts of all dead deliveries. @returns how many */
export const resendAllDead = (context: ResendContext) => changeAllDead(context, revive);

/** Gives up all dead deliveries. @returns how many */
export const discardAllDead = (context: ResendContext) => changeAllDead(context, discard);

async function changeDead(
  context: ResendContext,
  key: string,
  { change, changed }: { change: Change; changed: string },
): Promise<void> {
  await context.db.transaction(async (tx) => {
    const [found] = await tx
      .select({ state: delivery.state })
      .from(delivery)
      .where(eq(delivery.key, key))
      .for("update");
    if (!found) throw new NotFound("There is no such work: svc scheduler work lists the keys");
    if (found.state !== "Dead")
      throw new Conflict(`Only a dead delivery can be ${changed}: this delivery is ${found.state}`);
    await change(tx, context, [key]);
  });
}

async function changeAllDead(context: ResendContext, change: Change): Promise<number> {
  let [count, last] = [0, ""];
  for (;;) {
    const keys = await context.db.transaction(async (tx) => {
      const rows = await tx
        .select({ key: delivery.key })
        .from(delivery)
        .where(and(eq(delivery.state, "Dead"), gt(delivery.key, last)))
        .orderBy(asc(delivery.key))
        .limit(batch)
        .for("update");
      const keys = rows.map(({ key }) => key);
      await change(tx, context, keys);
      return keys;
    });
    count += keys.length;
    if (keys.length < batch) return count;
    last = keys.at(-1)!;
  }
}

async function revive(
  tx: Transaction,
  { clock, by = "system" }: ResendContext,
  keys: readonly string[],
): Promise<void> {
  const at = clock.now();
  await tx
    .update(delivery)
    .set({ state: "Queued", attempts: 0, dueAt: dueNow(at), finishedAt: null })
    .where(inArray(delivery.key, [...keys]));
  for (const key of keys) await audit(tx, { at, actor: by, action: "delivery.resent", subject: key });
}

async function discard(tx: Transaction, { clock }: ResendContext, keys: readonly string[]): Promise<void> {
  await tx
    .update(delivery)
    .set({ state: "Done", error: sql`${discardedReason} || ${delivery.error}` })
    .where(inArray(delivery.key, [...keys]));
  for (const key of keys)
    await audit(tx, { at: clock.now(), actor: "system", action: "delivery.discarded", subject: key });
}
