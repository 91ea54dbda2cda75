import { Type } from "@sinclair/typebox";
import { and, eq } from "drizzle-orm";
import type { Context } from "../../core/context.ts";
import { channelSlug } from "../../core/outbox/conversations.ts";
import { defineBuiltin, type Message } from "../../core/plugin.ts";
import { inTransaction } from "../../core/transaction.ts";
import { conversation, conversationMessage } from "../../drizzle/schema/index.ts";
import { Conflict } from "../../platform/errors.ts";

/**
 * The channel of an incident, in our database. Everyone who may read the incident may read it, so nobody needs to be
 * added. The caller records that it was created or archived.
 */
export default defineBuiltin({
  title: "Incident channel",
  slug: channelSlug,
  version: "1.0.0",
  type: "conversation",
  author: "svc",
  description: "Provides a channel in svc for each incident",
  configSchema: Type.Object({}),
  inDatabase: true,
  create: (_config, { context }) => ({
    create: () => ({}),
    send: ({ conversation: { incident }, message, key }) =>
      keepMessage(context, { incidentId: incident.id, recipientId: null, message, key }),
    direct({ incident, person, message, key }) {
      if (!incident) throw new Conflict("The channel belongs to an incident, but this message has none");
      return keepMessage(context, { incidentId: incident.id, recipientId: person.id, message, key });
    },
    add: () => {},
    remove: () => {},
    restrict: () => {},
    archive: () => {},
    reopen: () => {},
  }),
});

/**
 * Posts the message once for each key.
 * @throws Conflict if the incident has no channel, or if the channel is archived and does not have the message yet
 */
async function keepMessage(
  { db, clock }: Context,
  wanted: { incidentId: number; recipientId: number | null; message: Message; key: string },
): Promise<void> {
  const { incidentId, recipientId, message, key: deliveryKey } = wanted;
  const at = clock.now();
  const text = [message.subject, message.text].filter((part) => part.trim() !== "").join("\n\n");
  await inTransaction(db, async (tx) => {
    const [channel] = await tx
      .select({ id: conversation.id, archivedAt: conversation.archivedAt })
      .from(conversation)
      .where(and(eq(conversation.incidentId, incidentId), eq(conversation.pluginSlug, channelSlug)))
      // The lock prevents archiving until this transaction ends.
      .for("share");
    if (!channel) throw new Conflict("This incident has no channel in svc");
    const { id: conversationId } = channel;
    if (channel.archivedAt === null) {
      await tx
        .insert(conversationMessage)
        .values({ conversationId, at, recipientId, text, deliveryKey })
        .onConflictDoNothing();
      return;
    }
    const { conversationId: of, deliveryKey: by } = conversationMessage;
    const said = await tx
      .select({ id: conversationMessage.id })
      .from(conversationMessage)
      .where(and(eq(of, conversationId), eq(by, deliveryKey)));
    if (said.length === 0) throw new Conflict("The channel of this incident is archived");
  });
}
