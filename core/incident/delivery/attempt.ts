import { and, eq, inArray, ne, sql } from "drizzle-orm";
import type { Database } from "../../../drizzle/client.ts";
import { conversation, delivery, flowStep, incident, individual } from "../../../drizzle/schema/index.ts";
import { dueAgain } from "../../outbox/backoff.ts";
import { enqueue } from "../../outbox/job.ts";
import { comingConversations, restrictedStep } from "../../outbox/reach.ts";
import { splitDelivery } from "../../outbox/split.ts";
import { callPlugin, type Failure } from "../../plugin/call.ts";
import type { PluginContext } from "../../plugin/context.ts";
import { incidentFacts, personFacts } from "../incident/facts.ts";
import { mayBeTold } from "../participant/addresses.ts";
import { notChosen, resourceFacts } from "../steps/resource.ts";

export type AttemptContext = Omit<PluginContext, "db"> & { db: Database };
type Found = NonNullable<Awaited<ReturnType<typeof find>>>;

/** Why an attempt failed, and whether each other one would. */
type Reason = Pick<Failure, "detail" | "permanent">;

/** What the plugin said: whom it would send to one by one, or nothing more when it has sent it. */
type Answer = { ok: true; recipients?: readonly string[] } | ({ ok: false } & Reason);

/**
 * What an attempt came to; `split`: each recipient has a delivery now; `stale`: the job is no longer the delivery's, and
 * nothing was done.
 */
export type Attempt = "done" | "split" | "again" | "dead" | "stale";

/** The work was stopped in the middle: nobody knows whether it was sent, and the same job tries it again. */
export class Stopped extends Error {}

/**
 * Tries the delivery whose job this is, and notes what came of it; one that failed gets its next job with that note.
 * To the outside it happens at least once: should the worker die between the plugin's answer and our note, it is tried
 * again, under the same key.
 *
 * @throws Stopped when `signal` aborts before the plugin has answered
 */
export async function attemptDelivery(
  context: AttemptContext,
  jobId: string,
  signal?: AbortSignal,
): Promise<Attempt> {
  const found = await find(context, jobId);
  if (!found) return "stale";
  if (!found.place && (await isToCome(context, found)))
    return await noteFailed(context, found, { detail: "Its conversation is not open yet", permanent: false });
  const wrong = await whyNot(context, found);
  if (wrong) return await noteDead(context, found, wrong);
  // What is for one person is not read by those who are still in it.
  if (found.restriction && found.row.individualId === null)
    return await noteFailed(context, found, {
      detail: "The conversation is not restricted to the participants of its Restricted incident yet",
      permanent: found.restriction.state === "Failed" && found.restriction.dueAt === null,
    });
  const answer = await send(context, found, signal);
  if (!answer.ok) return await noteFailed(context, found, answer);
  if (!answer.recipients) return await noteDone(context, found);
  return (await splitDelivery(context, jobId, answer.recipients)) ? "split" : "stale";
}

/** Notes that its job was interrupted each time that a worker tried it. */
export async function buryDelivery(context: AttemptContext, jobId: string): Promise<Attempt> {
  const found = await find(context, jobId);
  if (!found) return "stale";
  return await noteDead(context, found, "It was interrupted each time: nobody knows whether it was sent");
}

async function find({ db }: AttemptContext, jobId: string) {
  const [found] = await db
    .select({
      ...{ row: delivery, person: personFacts, place: conversation },
      restriction: { state: flowStep.state, dueAt: flowStep.dueAt },
    })
    .from(delivery)
    .leftJoin(individual, eq(individual.id, delivery.individualId))
    .leftJoin(
      conversation,
      and(eq(conversation.incidentId, delivery.incidentId), eq(conversation.pluginSlug, delivery.pluginSlug)),
    )
    .leftJoin(incident, and(eq(incident.id, delivery.incidentId), eq(incident.visibility, "Restricted")))
    .leftJoin(
      flowStep,
      and(
        eq(flowStep.incidentId, incident.id),
        eq(flowStep.step, sql`${restrictedStep("")} || ${delivery.pluginSlug}`),
        ne(flowStep.state, "Done"),
      ),
    )
    .where(eq(delivery.jobId, jobId));
  return found && { ...found, jobId };
}

async function isToCome({ db, plugins }: AttemptContext, { row }: Found): Promise<boolean> {
  const coming = await comingConversations(db, plugins, [row.incidentId]);
  return coming.get(row.incidentId)?.includes(row.pluginSlug) ?? false;
}

/** Why it must not be sent any more, by what the incidents are now. */
async function whyNot(context: AttemptContext, { row, place }: Found): Promise<string | undefined> {
  const { incidentId, individualId, about } = row;
  if (!place) return "Its incident has no conversation by this plugin";
  if (place.archivedAt !== null) return "The conversation of its incident is archived";
  if (about.some((id) => id !== incidentId) && (await hasRestricted(context, about)))
    return "An incident that it tells of has become Restricted";
  if (individualId !== null && !(await mayBeTold(context, incidentId, individualId)))
    return "Its incident is Restricted, and this person takes no part in it";
  return undefined;
}

async function hasRestricted({ db }: AttemptContext, ids: readonly number[]): Promise<boolean> {
  const restricted = and(inArray(incident.id, [...ids]), eq(incident.visibility, "Restricted"));
  return (await db.$count(incident, restricted)) > 0;
}

/** @throws Stopped */
async function send(
  context: AttemptContext,
  { row, person, place }: Found,
  signal?: AbortSignal,
): Promise<Answer> {
  const { incidentId, pluginSlug, recipient, key, subject, text } = row;
  const failed = (detail: string, permanent = false): Answer => ({ ok: false, detail, permanent });
  const plugin = context.plugins.find("conversation", pluginSlug);
  if (!plugin) return failed(notChosen(pluginSlug).detail);
  const isSplitting = plugin.methods.recipients !== undefined;
  // It would take no notice of the recipient.
  if (recipient !== null && !isSplitting) return failed(`${pluginSlug} no longer sends to one recipient`);
  const incident = await incidentFacts(context, incidentId);
  if (!incident || !place) return failed("Its incident is gone", true);
  const message = { subject, text };
  const conversation = resourceFacts(incident, place);
  const to = recipient === null ? {} : { recipient };
  const options = { signal, key };
  const outcome = await (person
    ? callPlugin(plugin, "direct", { person, message, incident }, options)
    : recipient === null && isSplitting
      ? callPlugin(plugin, "recipients", { conversation }, options)
      : callPlugin(plugin, "send", { conversation, message, ...to }, options));
  if (outcome.ok) return { ok: true, ...(outcome.value && { recipients: outcome.value }) };
  const { reason, detail, frames, permanent } = outcome;
  if (reason === "aborted") throw new Stopped();
  context.log.warn({ plugin: pluginSlug, delivery: key, reason, frames }, `a plugin failed: ${detail}`);
  return failed(detail, permanent);
}

async function noteDone({ db, clock }: AttemptContext, { jobId }: Found): Promise<Attempt> {
  const noted = await db
    .update(delivery)
    .set({ state: "Done", jobId: null, dueAt: null, finishedAt: clock.now(), lastError: null })
    .where(eq(delivery.jobId, jobId))
    .returning({ key: delivery.key });
  return noted.length > 0 ? "done" : "stale";
}

async function noteFailed(
  context: AttemptContext,
  found: Found,
  { detail: error, permanent }: Reason,
): Promise<Attempt> {
  const { db, clock } = context;
  const { key, pluginSlug, recipient, attempts: before } = found.row;
  const attempts = before + 1;
  const dueAt = permanent ? null : dueAgain(clock.now(), attempts);
  if (!dueAt) return await noteDead(context, found, error, attempts);
  return await db.transaction(async (tx) => {
    const id = crypto.randomUUID();
    const noted = await tx
      .update(delivery)
      .set({ jobId: id, attempts, dueAt, lastError: error })
      .where(eq(delivery.jobId, found.jobId))
      .returning({ key: delivery.key });
    if (noted.length === 0) return "stale";
    await enqueue(tx, [{ id, key, pluginSlug, recipient, dueAt }]);
    return "again";
  });
}

async function noteDead(
  { db, clock, log }: AttemptContext,
  { row: { key, pluginSlug, attempts: before }, jobId }: Found,
  error: string,
  attempts = before,
): Promise<Attempt> {
  const noted = await db
    .update(delivery)
    .set({ state: "Dead", jobId: null, dueAt: null, attempts, finishedAt: clock.now(), lastError: error })
    .where(eq(delivery.jobId, jobId))
    .returning({ key: delivery.key });
  if (noted.length === 0) return "stale";
  log.error({ delivery: key, plugin: pluginSlug, attempts }, `a delivery is dead: ${error}`);
  return "dead";
}
