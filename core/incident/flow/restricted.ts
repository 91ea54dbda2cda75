import { and, eq, ne } from "drizzle-orm";
import type { Transaction } from "../../../drizzle/client.ts";
import { conversation } from "../../../drizzle/schema/index.ts";
import { channelSlug, restrictedStep } from "../../outbox/reach.ts";
import { type Planned, planSteps } from "./plan.ts";

/**
 * Writes down, in the transaction that makes an Open incident Restricted, that its conversations are to be restricted, also
 * those that are archived. Its own channel is read by those who may read the incident.
 *
 * @returns whether there is anything to do
 */
export async function planRestricted(
  tx: Transaction,
  { incidentId, at, plugins }: Planned,
): Promise<boolean> {
  const rows = await tx
    .select({ slug: conversation.pluginSlug })
    .from(conversation)
    .where(and(eq(conversation.incidentId, incidentId), ne(conversation.pluginSlug, channelSlug)));
  const slugs = rows.map(({ slug }) => slug).filter((slug) => plugins.find("conversation", slug));
  await planSteps(tx, { incidentId, at }, slugs.map(restrictedStep));
  return slugs.length > 0;
}
