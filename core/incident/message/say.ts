import { and, eq, isNull } from "drizzle-orm";
import type { Transaction } from "../../../drizzle/client.ts";
import { conversation, conversationMessage, individual, participant } from "../../../drizzle/schema/index.ts";
import { Conflict, InvalidInput } from "../../../platform/errors.ts";
import { parseProse } from "../../../platform/text.ts";
import { individualOf } from "../../catalog/person/of_actor.ts";
import { type Person, personColumns } from "../../catalog/person/person.ts";
import type { Actor } from "../../context.ts";
import { channelSlug } from "../../outbox/conversations.ts";
import type { AppContext } from "../../plugin/context.ts";
import { lockIncident } from "../incident/lock.ts";
import { newEntry } from "../timeline/entry.ts";
import { recordEvent } from "../timeline/event.ts";
import { announceSaid } from "./announce.ts";
import type { Message } from "./message.ts";

/**
 * Writes into an incident's own channel: to everyone, and on its timeline, or, with `recipientId`, to one participant.
 * Anyone who may read the incident may do so. `origin` is the conversation plugin from which the message comes, if any.
 *
 * @throws InvalidInput
 * @throws NotFound when the actor may not read the incident
 * @throws Conflict when it has no such channel, or an archived one
 */
export async function say(
  context: AppContext,
  actor: Actor,
  wanted: { incidentId: number; text: string; recipientId?: number; origin?: string },
): Promise<Message> {
  const { db, clock } = context;
  const { incidentId, recipientId, origin = channelSlug } = wanted;
  const text = parseProse("text", wanted.text);
  return db.transaction(async (tx) => {
    const incident = await lockIncident(tx, actor, incidentId);
    const at = clock.now();
    const conversationId = await openChannel(tx, incidentId);
    const recipient = recipientId === undefined ? null : await findRecipient(tx, incidentId, recipientId);
    const authorId = await individualOf(tx, actor, at);
    const [author] = await tx.select(personColumns).from(individual).where(eq(individual.id, authorId));
    const [said] = await tx
      .insert(conversationMessage)
      .values({ conversationId, at, authorId, recipientId, text, origin })
      .returning({ id: conversationMessage.id });
    const message = { id: said!.id, author: author!, recipient, text };
    // Everybody who may read the incident reads its timeline, so a message to one person is not on it.
    const eventId =
      recipient === null
        ? await recordEvent(tx, {
            incidentId,
            at,
            actor: actor.user,
            kind: "message.sent",
            description: "Message sent",
            data: { message_id: message.id },
          })
        : null;
    await announceSaid(tx, context, incident, { ...message, origin });
    return { ...message, at, ...newEntry, eventId };
  });
}

/** The incident must be locked, as it is while the channel is archived or reopened. */
async function openChannel(tx: Transaction, incidentId: number): Promise<number> {
  const [channel] = await tx
    .select({ id: conversation.id, archivedAt: conversation.archivedAt })
    .from(conversation)
    .where(and(eq(conversation.incidentId, incidentId), eq(conversation.pluginSlug, channelSlug)));
  if (!channel) throw new Conflict("This incident has no channel in svc");
  if (channel.archivedAt !== null) throw new Conflict("The channel of this incident is archived");
  return channel.id;
}

async function findRecipient(tx: Transaction, incidentId: number, id: number): Promise<Person> {
  const [found] = await tx
    .select(personColumns)
    .from(participant)
    .innerJoin(individual, eq(individual.id, participant.individualId))
    .where(
      and(
        eq(participant.incidentId, incidentId),
        eq(participant.individualId, id),
        isNull(participant.leftAt),
      ),
    );
  if (!found) throw new InvalidInput("recipient_id", "No participant of the incident has this id");
  return found;
}
