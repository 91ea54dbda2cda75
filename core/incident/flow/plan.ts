import { and, eq, inArray, isNotNull, isNull, ne, or, sql } from "drizzle-orm";
import type { Transaction } from "../../../drizzle/client.ts";
import { conversation, flowStep } from "../../../drizzle/schema/index.ts";
import { channelSlug, perhapsArchived, restrictedStep } from "../../outbox/conversations.ts";
import { dueNow } from "../../outbox/work.ts";
import type { Plugins } from "../../plugin/choose.ts";

export interface Planned {
  incidentId: number;
  at: Date;
  plugins: Plugins;
}

/** Plans the steps that follow a report, in its transaction. `runFlow` runs them. */
export async function planFlow(tx: Transaction, { incidentId, at, plugins }: Planned): Promise<void> {
  await planSteps(tx, { incidentId, at }, stepsOfReport(plugins));
}

/** Only selected plugin types have steps: selecting a plugin later does not affect existing incidents. */
function stepsOfReport(plugins: Plugins): string[] {
  const chosen = (type: Parameters<Plugins["ofType"]>[0]) => plugins.ofType(type).length > 0;
  return [
    ...(chosen("participant") ? ["reported:participants"] : []),
    "reported:commander",
    ...(chosen("document-resolver") || chosen("document") ? ["reported:documents"] : []),
    ...creatingSteps(plugins),
  ];
}

/** The steps that open conversations and create groups. */
function creatingSteps(plugins: Plugins): string[] {
  return [
    ...plugins.ofType("conversation").map(({ slug }) => `reported:conversation:${slug}`),
    ...plugins.ofType("participant_group").map(({ slug }) => `reported:group:${slug}`),
  ];
}

/**
 * Makes steps due, including those that were done. A running step continues and is due again afterwards, because it may
 * have read what has changed now. Its last error stays, so that the timeline does not repeat it.
 */
export async function planSteps(
  tx: Transaction,
  { incidentId, at }: Omit<Planned, "plugins">,
  steps: readonly string[],
): Promise<void> {
  if (steps.length === 0) return;
  const running = sql`${flowStep.state} = 'Running'`;
  const dueAt = dueNow(at);
  await tx
    .insert(flowStep)
    // In a fixed order, so that two that plan the same steps cannot deadlock.
    .values(steps.toSorted().map((step) => ({ incidentId, step, dueAt })))
    .onConflictDoUpdate({
      target: [flowStep.incidentId, flowStep.step],
      set: {
        state: sql`case when ${running} then 'Running' else 'Pending' end`,
        attempts: sql`case when ${running} then ${flowStep.attempts} else 0 end`,
        dueAt,
        finishedAt: null,
      },
    });
}

/**
 * Plans the update of the incident's conversations and groups, in the transaction in which somebody joins or leaves.
 * The caller holds `lockIncident`.
 *
 * `except` are steps that have yet to read who takes part.
 */
export async function planJoined(
  tx: Transaction,
  { incidentId, at, plugins }: Planned,
  except: ReadonlySet<string> = new Set(),
): Promise<void> {
  const reported = creatingSteps(plugins).filter((step) => !except.has(step));
  if (reported.length === 0) return;
  // A plugin that was selected later has created nothing for this incident.
  const there = await tx
    .select({ step: flowStep.step })
    .from(flowStep)
    .where(and(eq(flowStep.incidentId, incidentId), inArray(flowStep.step, reported)));
  const steps = there.map(({ step }) => step.replace("reported:", "joined:"));
  await planSteps(tx, { incidentId, at }, steps);
}

/** Plans archiving the conversations, in the transaction that closes an incident. */
export async function planClosed(tx: Transaction, { incidentId, at, plugins }: Planned): Promise<void> {
  const steps = plugins.ofType("conversation").map(({ slug }) => `closed:conversation:${slug}`);
  await planSteps(tx, { incidentId, at }, steps);
}

/**
 * Plans reopening the archived conversations, in the transaction that reopens an incident. Its own channel is open at
 * once.
 *
 * @returns whether there is anything to do, and the plugins whose conversations will be open again
 */
export async function planReopened(
  tx: Transaction,
  { incidentId, at, plugins }: Planned,
): Promise<{ follows: boolean; reopening: string[] }> {
  const { pluginSlug, archivedAt } = conversation;
  const rows = await tx
    .select({ slug: pluginSlug })
    .from(conversation)
    .where(and(eq(conversation.incidentId, incidentId), or(isNotNull(archivedAt), perhapsArchived)));
  const slugs = rows.map(({ slug }) => slug);
  const others = slugs.filter((slug) => slug !== channelSlug);
  const these = (slugs: string[]) => and(eq(conversation.incidentId, incidentId), inArray(pluginSlug, slugs));
  await tx
    .update(conversation)
    .set({ archivedAt: null })
    .where(these([channelSlug]));
  // It counts as archived until it is certain to be open.
  const canReopen = others.filter((slug) => plugins.find("conversation", slug)?.methods.reopen !== undefined);
  await tx
    .update(conversation)
    .set({ archivedAt: at })
    .where(and(these(canReopen), isNull(archivedAt)));
  const steps = others.filter((slug) => plugins.find("conversation", slug));
  await planSteps(
    tx,
    { incidentId, at },
    steps.map((slug) => `reopened:conversation:${slug}`),
  );
  return { follows: steps.length > 0, reopening: canReopen };
}

/**
 * Plans restricting the conversations, including archived ones, in the transaction that makes an Open incident
 * Restricted. Its own channel follows the incident's permissions.
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
