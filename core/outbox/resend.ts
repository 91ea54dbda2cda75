import { and, asc, eq, gt, inArray } from "drizzle-orm";
import type { Database, Transaction } from "../../drizzle/client.ts";
import { delivery } from "../../drizzle/schema/index.ts";
import type { Clock } from "../../platform/clock.ts";
import { Conflict, NotFound } from "../../platform/errors.ts";
import { audit } from "../audit.ts";
import { dueNow } from "./work.ts";

type ResendContext = { db: Database; clock: Clock };

const batch = 500;

/**
 * Resets the attempts of a dead delivery.
 * @throws NotFound @throws Conflict when it is not dead
 */
export async function resendDelivery(context: ResendContext, key: string): Promise<void> {
  await context.db.transaction(async (tx) => {
    const [found] = await tx
      .select({ state: delivery.state })
      .from(delivery)
      .where(eq(delivery.key, key))
      .for("update");
    if (!found) throw new NotFound("There is no such work: svc scheduler work lists the keys");
    if (found.state !== "Dead")
      throw new Conflict(`Only a dead delivery can be sent again: this delivery is ${found.state}`);
    await revive(tx, context, [key]);
  });
}

/** Resets the attempts of all dead deliveries. @returns how many */
export async function resendAllDead(context: ResendContext): Promise<number> {
  let [sent, last] = [0, ""];
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
      await revive(tx, context, keys);
      return keys;
    });
    sent += keys.length;
    if (keys.length < batch) return sent;
    last = keys.at(-1)!;
  }
}

/** The rows must be locked and Dead. */
async function revive(tx: Transaction, { clock }: ResendContext, keys: readonly string[]): Promise<void> {
  if (keys.length === 0) return;
  const at = clock.now();
  await tx
    .update(delivery)
    .set({ state: "Queued", attempts: 0, dueAt: dueNow(clock), finishedAt: null })
    .where(inArray(delivery.key, [...keys]));
  for (const key of keys) await audit(tx, { at, actor: "system", action: "delivery.resent", subject: key });
}
