import { and, eq, isNull, or, sql } from "drizzle-orm";
import { conversation, conversationMessage, individual } from "../../../drizzle/schema/index.ts";
import type { Actor, Context } from "../../context.ts";
import { type List, type ListQuery, startPage } from "../../list/page.ts";
import { channelSlug } from "../../outbox/conversations.ts";
import { withState } from "../timeline/entry.ts";
import { maySee, seeIncident } from "../visibility/see.ts";
import { type Message, messageColumns, recipient } from "./message.ts";

const messages: List<"at"> = {
  name: "messages",
  id: conversationMessage.id,
  sorts: { at: { by: conversationMessage.at, kind: "instant" } },
  defaultSort: "-at",
};

/**
 * Returns a page of the messages in an incident's own channel, newest first. A direct message is visible only to its
 * recipient and its author, even among admins.
 *
 * @throws NotFound when the actor may not read the incident
 * @throws InvalidInput
 */
export async function listMessages(
  context: Context,
  actor: Actor,
  query: ListQuery & { incidentId: number },
): Promise<{ items: Message[]; next_cursor: string | null }> {
  const { incidentId } = query;
  await seeIncident(context, actor, incidentId);
  const page = startPage(messages, query, { incidentId });
  // A single value, so that PostgreSQL walks the index of the channel's messages in the order of the list.
  const channel = context.db
    .select({ id: conversation.id })
    .from(conversation)
    .where(
      and(
        eq(conversation.incidentId, incidentId),
        eq(conversation.pluginSlug, channelSlug),
        maySee(actor, incidentId),
      ),
    );
  const rows = await context.db
    .select({ ...messageColumns, key: page.key })
    .from(conversationMessage)
    .leftJoin(individual, eq(individual.id, conversationMessage.authorId))
    .leftJoin(recipient, eq(recipient.id, conversationMessage.recipientId))
    .where(
      page.within(
        and(
          sql`${conversationMessage.conversationId} = ${channel}`,
          or(
            isNull(conversationMessage.recipientId),
            eq(recipient.email, actor.user),
            eq(individual.email, actor.user),
          ),
        ),
      ),
    )
    .orderBy(...page.orderBy)
    .limit(page.limit);
  return page.finish(rows.map(({ key, ...row }) => ({ item: withState(row), key })));
}
