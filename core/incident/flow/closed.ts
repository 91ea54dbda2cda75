import type { Transaction } from "../../../drizzle/client.ts";
import { type Planned, planSteps } from "./plan.ts";

/** Writes down, in the transaction that closes an incident, that its conversations are to be archived. */
export async function planClosed(tx: Transaction, { incidentId, at, plugins }: Planned): Promise<void> {
  const steps = plugins.ofType("conversation").map(({ slug }) => `closed:conversation:${slug}`);
  await planSteps(tx, { incidentId, at }, steps);
}
