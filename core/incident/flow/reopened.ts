import { and, eq, inArray, isNotNull, isNull, or, sql } from "drizzle-orm";
import type { Transaction } from "../../../drizzle/client.ts";
import { conversation, flowStep } from "../../../drizzle/schema/index.ts";
import { channelSlug } from "../../outbox/reach.ts";
import { type Planned, planSteps } from "./plan.ts";

/**
 * Writes down, in the transaction that reopens an incident, that its archived conversations are to be opened again. In its
 * own channel people can go on talking from then on.
 *
 * @returns whether there is anything to do
 */
export async function planReopened(tx: Transaction, { incidentId, at, plugins }: Planned): Promise<boolean> {
  const { pluginSlug, archivedAt } = conversation;
  // Somebody began to archive it, and nobody knows how far that came.
  const perhaps = sql`exists (select from ${flowStep} where ${flowStep.incidentId} = ${conversation.incidentId}
    and ${flowStep.step} = 'closed:conversation:' || ${pluginSlug}
    and ${isNull(flowStep.finishedAt)} and ${flowStep.attempts} > 0)`;
  const rows = await tx
    .select({ slug: pluginSlug })
    .from(conversation)
    .where(and(eq(conversation.incidentId, incidentId), or(isNotNull(archivedAt), perhaps)));
  const slugs = rows.map(({ slug }) => slug);
  const others = slugs.filter((slug) => slug !== channelSlug);
  const these = (slugs: string[]) => and(eq(conversation.incidentId, incidentId), inArray(pluginSlug, slugs));
  await tx
    .update(conversation)
    .set({ archivedAt: null })
    .where(these([channelSlug]));
  // It counts as archived until it is open for certain.
  const knowing = others.filter((slug) => plugins.find("conversation", slug)?.methods.reopen !== undefined);
  await tx
    .update(conversation)
    .set({ archivedAt: at })
    .where(and(these(knowing), isNull(archivedAt)));
  const steps = others.filter((slug) => plugins.find("conversation", slug));
  await planSteps(
    tx,
    { incidentId, at },
    steps.map((slug) => `reopened:conversation:${slug}`),
  );
  return steps.length > 0;
}
