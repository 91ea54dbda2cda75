import { and, eq, inArray, ne, sql } from "drizzle-orm";
import type { Database } from "../../../drizzle/client.ts";
import { conversation, delivery, flowStep, incident, individual } from "../../../drizzle/schema/index.ts";
import { NotFound, Refused, Unavailable } from "../../../platform/errors.ts";
import { personColumns } from "../../catalog/person/person.ts";
import { awaitsWelcome, opensLater, restrictedStep } from "../../outbox/conversations.ts";
import { type DeliveryClaim, deliveries, retryFailed, splitDelivery } from "../../outbox/deliver.ts";
import {
  attemptWork,
  failWork,
  finishWork,
  isHeld,
  LeaseLost,
  Postponed,
  releaseWork,
} from "../../outbox/work.ts";
import { callPlugin, workErrorOf } from "../../plugin/call.ts";
import type { AppContext } from "../../plugin/context.ts";
import { incidentFacts } from "../incident/facts.ts";
import { lockIncident } from "../incident/lock.ts";
import { correctedKey, editTask, withdrawTask } from "../message/correction.ts";
import { mayBeTold } from "../participant/addresses.ts";
import { recordReminded, reportReminder } from "../reminder/remind.ts";
import { welcomeSequence } from "../steps/conversation.ts";
import { chosen, resourceFacts } from "../steps/resource.ts";
import { currentOf, type Obsolete } from "./current.ts";

export type AttemptContext = Omit<AppContext, "db"> & { db: Database };
type Found = NonNullable<Awaited<ReturnType<typeof find>>>;

/**
 * The outcome of an attempt. `split`: each recipient has a delivery now. `obsolete`: it was dropped, because it is no longer
 * true. `stale`: the delivery belongs to another worker now, and nothing was recorded.
 */
export type Attempt = "done" | "split" | "obsolete" | "again" | "dead" | "given_back" | "stale";

/** Sent; or to be sent to each of these recipients; or no longer to be sent. */
type Sent = { recipients?: readonly string[] } | Obsolete;

/**
 * Attempts a delivery and records the outcome. It is sent at least once: if the worker dies between the plugin's answer
 * and the record, the delivery is retried with the same key.
 */
export async function attemptDelivery(
  context: AttemptContext,
  claim: DeliveryClaim,
  signal?: AbortSignal,
): Promise<Attempt> {
  const { db, clock, log } = context;
  const { key, pluginSlug, attempts } = claim;
  return await attemptWork<Sent, Attempt>(
    claim,
    signal,
    async () => await send(context, await find(context, claim), signal),
    {
      finish: async (sent) => {
        if ("obsolete" in sent) {
          const ended = { state: "Obsolete", error: sent.obsolete };
          await finishWork(db, deliveries, claim, clock.now(), ended);
          log.info({ delivery: key, plugin: pluginSlug }, `a delivery is obsolete: ${sent.obsolete}`);
          return "obsolete";
        }
        if (!sent.recipients) await recordSent(context, claim);
        else await splitDelivery(context, claim, sent.recipients);
        return sent.recipients ? "split" : "done";
      },
      fail: async (failure) => {
        const end = await failWork(db, deliveries, claim, clock.now(), failure);
        if (end === "dead")
          log.error({ delivery: key, plugin: pluginSlug, attempts }, `a delivery is dead: ${failure.reason}`);
        return end;
      },
      release: async (seconds) => {
        await releaseWork(db, deliveries, claim, clock.now(), seconds);
        return "given_back";
      },
      onFault: (err) => log.error({ err, delivery: key }, "a delivery failed because of an internal error"),
    },
  ).catch((error: unknown) => {
    if (error instanceof LeaseLost) return "stale";
    throw error;
  });
}

/** @throws LeaseLost */
async function recordSent({ db, clock }: AttemptContext, claim: DeliveryClaim): Promise<void> {
  // First, because until it is finished, it holds back later ones.
  await retryFailed(db, claim, clock.now());
  if (claim.topic === null || claim.task !== reportReminder)
    return await finishWork(db, deliveries, claim, clock.now());
  await db.transaction(async (tx) => {
    // The incident first, like the task that replaces reminders.
    await lockIncident(tx, "worker", claim.incidentId).catch((error: unknown) => {
      throw error instanceof NotFound ? new LeaseLost() : error;
    });
    await finishWork(tx, deliveries, claim, clock.now());
    await recordReminded(tx, claim, clock.now());
  });
}

/**
 * Reads the recipient and the conversation. In one statement: if it were opened between two, it would seem that it never
 * will be.
 *
 * @throws LeaseLost before anything is sent, if the delivery is no longer ours
 */
async function find({ db }: AttemptContext, row: DeliveryClaim) {
  const [found] = await db
    .select({
      person: personColumns,
      place: conversation,
      opensLater,
      awaitsWelcome,
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
    .where(isHeld(deliveries, row));
  if (!found) throw new LeaseLost();
  return { ...found, row };
}

/** Why it must no longer be sent, given the current state of the incidents. */
async function whyNot(
  context: AttemptContext,
  { row, place }: { row: DeliveryClaim; place: NonNullable<Found["place"]> },
): Promise<string | undefined> {
  const { incidentId, individualId, about } = row;
  if (place.archivedAt !== null) return "The conversation of its incident is archived";
  if (about.some((id) => id !== incidentId) && (await hasRestricted(context, about)))
    return "An incident that it mentions has become Restricted";
  if (individualId !== null && !(await mayBeTold(context, incidentId, individualId)))
    return "Its incident is Restricted, and this person is not a participant";
  return undefined;
}

async function hasRestricted({ db }: AttemptContext, ids: readonly number[]): Promise<boolean> {
  const restricted = and(inArray(incident.id, [...ids]), eq(incident.visibility, "Restricted"));
  return (await db.$count(incident, restricted)) > 0;
}

/** @throws Unavailable, or Refused if a retry would fail as well */
async function send(context: AttemptContext, found: Found, signal?: AbortSignal): Promise<Sent> {
  const { person, place, restriction } = found;
  const current = await currentOf(context, found.row);
  if ("obsolete" in current) return current;
  const row = { ...found.row, about: [...current.about] };
  const { incidentId, individualId, pluginSlug, recipient, key } = row;
  const isEnabled = context.plugins.find("conversation", pluginSlug) !== undefined;
  const isOpen = place?.archivedAt === null;
  if (!isOpen && isEnabled && found.opensLater) throw new Unavailable("Its conversation is not open yet");
  if (!place) throw new Refused("Its incident has no conversation of this plugin");
  // Only what would wait for an earlier message waits for the welcome, which may be a delivery itself.
  const isInOrder = individualId === null && row.topic === null && row.sequence !== welcomeSequence;
  if (isInOrder && isEnabled && found.awaitsWelcome) throw new Postponed();
  const wrong = await whyNot(context, { row, place });
  if (wrong) throw new Refused(wrong);
  // Those still in the conversation cannot read a message to one person.
  if (restriction && individualId === null) {
    const reason = "The conversation is not restricted to the participants of its Restricted incident yet";
    const isDead = restriction.state === "Failed" && restriction.dueAt === null;
    throw isDead ? new Refused(reason) : new Unavailable(reason);
  }
  const plugin = chosen({ context }, "conversation", pluginSlug);
  const isSplitting = plugin.methods.recipients !== undefined;
  // Otherwise the plugin would ignore the recipient.
  if (recipient !== null && !isSplitting)
    throw new Unavailable(`${pluginSlug} no longer sends to one recipient`);
  const incident = await incidentFacts(context, incidentId);
  if (!incident) throw new LeaseLost();
  const { message } = current;
  const occurredAt = row.topic === null ? (row.occurredAt ?? row.queuedAt) : context.clock.now();
  const at = {
    occurredAt: occurredAt.toISOString(),
    ...(row.sequence !== null && { sequence: row.sequence }),
  };
  const conversation = resourceFacts(incident, place);
  const to = recipient === null ? {} : { recipient };
  const options = { signal, key };
  const sends = async () => {
    if (person) return await callPlugin(plugin, "direct", { person, message, incident, ...at }, options);
    if (recipient === null && isSplitting)
      return await callPlugin(plugin, "recipients", { conversation }, options);
    const corrected = { conversation, original: correctedKey(key), ...to, ...at };
    if (row.task === editTask && plugin.methods.edit)
      return await callPlugin(plugin, "edit", { ...corrected, message }, options);
    if (row.task === withdrawTask && plugin.methods.withdraw)
      return await callPlugin(plugin, "withdraw", corrected, options);
    return await callPlugin(plugin, "send", { conversation, message, ...to, ...at }, options);
  };
  const outcome = await sends();
  if (outcome.ok) return { recipients: outcome.value || undefined };
  const { reason, detail, frames } = outcome;
  if (reason !== "aborted")
    context.log.warn({ plugin: pluginSlug, delivery: key, reason, frames }, `a plugin failed: ${detail}`);
  throw workErrorOf(outcome);
}
