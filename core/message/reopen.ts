import { and, eq } from "drizzle-orm";
import type { Transaction } from "../../drizzle/client.ts";
import { conversation } from "../../drizzle/schema/index.ts";
import { channelSlug } from "./message.ts";

/**
 * Lets people go on talking in the own channel of an incident that is reopened, in that transaction. Of the conversations
 * of other services we only know that they were archived.
 */
export async function reopenChannel(tx: Transaction, incidentId: number): Promise<void> {
  await tx
    .update(conversation)
    .set({ archivedAt: null })
    .where(and(eq(conversation.incidentId, incidentId), eq(conversation.pluginSlug, channelSlug)));
}
