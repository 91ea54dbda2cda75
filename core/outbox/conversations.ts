import { and, eq, inArray, isNotNull, isNull, ne, not, or, sql } from "drizzle-orm";
import type { Transaction } from "../../drizzle/client.ts";
import { conversation, delivery, flowStep, incident } from "../../drizzle/schema/index.ts";
import type { Plugins } from "../plugin/choose.ts";
import { holdingAttempts } from "./work.ts";

/** The incident's own channel. Its conversation is stored here, not in another service. */
export const channelSlug = "channel";

/** The step whose state says whether non-participants may read the conversation of a Restricted incident. */
export const restrictedStep = (slug: string) => `restricted:conversation:${slug}`;

/** The incident is Restricted now, and the plugin has said that it cannot restrict the conversation. */
const staysPublic = sql`exists (
  select from ${flowStep} join ${incident} on ${incident.id} = ${flowStep.incidentId}
  where ${flowStep.incidentId} = ${conversation.incidentId}
    and ${flowStep.step} = ${restrictedStep("")} || ${conversation.pluginSlug}
    and ${flowStep.state} = 'Failed' and ${flowStep.dueAt} is null and ${incident.visibility} = 'Restricted')`;

/** An attempt to archive the conversation has begun and not finished: it may be archived already. */
export const perhapsArchived = sql`exists (
  select from ${flowStep} where ${flowStep.incidentId} = ${conversation.incidentId}
    and ${flowStep.step} = 'closed:conversation:' || ${conversation.pluginSlug}
    and ${flowStep.finishedAt} is null and ${flowStep.attempts} > 0)`;

/** A selected plugin with an open conversation of an incident. */
export interface OpenConversation {
  slug: string;
  /** Non-participants may read what is sent to everyone in it. */
  staysPublic: boolean;
}

/** Returns each incident's open conversations. Empty if nobody can be reached. */
export async function openConversations(
  tx: Transaction,
  plugins: Plugins,
  incidentIds: readonly number[],
): Promise<Map<number, OpenConversation[]>> {
  const rows = await tx
    .select({
      incidentId: conversation.incidentId,
      slug: conversation.pluginSlug,
      // Nested, because drizzle would otherwise drop the columns' table names.
      staysPublic: sql<boolean>`${staysPublic}`,
    })
    .from(conversation)
    .innerJoin(incident, eq(incident.id, conversation.incidentId))
    .where(
      and(
        inArray(conversation.incidentId, [...incidentIds]),
        isNull(conversation.archivedAt),
        not(and(eq(incident.status, "Closed"), perhapsArchived)!),
      ),
    )
    .orderBy(conversation.pluginSlug);
  const chosen = rows.filter(({ slug }) => plugins.find("conversation", slug) !== undefined);
  return Map.groupBy(chosen, (row) => row.incidentId);
}

/** Returns the conversations of each incident that a step has yet to open, or to reopen. */
export async function comingConversations(
  tx: Pick<Transaction, "select">,
  plugins: Plugins,
  incidentIds: readonly number[],
): Promise<Map<number, string[]>> {
  const ours = plugins.ofType("conversation");
  if (ours.length === 0 || incidentIds.length === 0) return new Map();
  const opening = ours.map(({ slug }) => openingStep(slug));
  const reopening = ours.flatMap(({ slug, methods }) => (methods.reopen ? [reopeningStep(slug)] : []));
  const slug = sql<string>`split_part(${flowStep.step}, ':', 3)`;
  const rows = await tx
    .select({ incidentId: flowStep.incidentId, slug })
    .from(flowStep)
    .innerJoin(incident, eq(incident.id, flowStep.incidentId))
    .leftJoin(
      conversation,
      and(eq(conversation.incidentId, flowStep.incidentId), eq(conversation.pluginSlug, slug)),
    )
    .where(
      and(
        inArray(flowStep.incidentId, [...incidentIds]),
        // The step must be retried automatically: one that has failed permanently waits for a person.
        isNull(flowStep.finishedAt),
        isNotNull(flowStep.dueAt),
        or(
          and(inArray(flowStep.step, opening), isNull(conversation.id)),
          and(
            inArray(flowStep.step, reopening),
            isNotNull(conversation.archivedAt),
            // If it was closed again, the step opens nothing.
            ne(incident.status, "Closed"),
          ),
        ),
      ),
    )
    .orderBy(flowStep.step);
  const byIncident = Map.groupBy(rows, (row) => row.incidentId);
  return new Map([...byIncident].map(([id, its]) => [id, its.map((row) => row.slug)]));
}

const openingStep = (slug: string) => `reported:conversation:${slug}`;
const reopeningStep = (slug: string) => `reopened:conversation:${slug}`;

/**
 * For a delivery joined with its conversation: a step has yet to open that, or to reopen it. The step must be retried
 * automatically.
 */
export const opensLater = sql<boolean>`exists (
  select from ${flowStep} as "opening" where "opening".incident_id = ${delivery.incidentId}
    and "opening".step = case when ${conversation.id} is null then ${openingStep("")} else ${reopeningStep("")} end
      || ${delivery.pluginSlug}
    and "opening".finished_at is null and "opening".due_at is not null)`;

/**
 * For a delivery: its conversation has been created, but its participants are still to be added and welcomed. Like an
 * earlier message, that holds it back until the third attempt has failed.
 */
export const awaitsWelcome = sql<boolean>`exists (
  select from ${flowStep} as "welcoming" where "welcoming".incident_id = ${delivery.incidentId}
    and "welcoming".step = ${openingStep("")} || ${delivery.pluginSlug}
    and "welcoming".finished_at is null and "welcoming".due_at is not null
    and ("welcoming".attempts < ${holdingAttempts}
      or "welcoming".attempts = ${holdingAttempts} and "welcoming".state = 'Running'))`;
