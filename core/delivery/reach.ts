import { and, inArray, isNull } from "drizzle-orm";
import type { Transaction } from "../../drizzle/client.ts";
import { conversation } from "../../drizzle/schema/index.ts";
import type { Plugins } from "../plugin/choose.ts";

/** The chosen plugins by which each of the incidents is talked about now; none where nobody can be reached by it. */
export async function openConversations(
  tx: Transaction,
  plugins: Plugins,
  incidentIds: readonly number[],
): Promise<Map<number, string[]>> {
  const rows = await tx
    .select({ incidentId: conversation.incidentId, slug: conversation.pluginSlug })
    .from(conversation)
    .where(and(inArray(conversation.incidentId, [...incidentIds]), isNull(conversation.archivedAt)))
    .orderBy(conversation.pluginSlug);
  const chosen = rows.filter(({ slug }) => plugins.find("conversation", slug) !== undefined);
  return new Map(
    [...Map.groupBy(chosen, (row) => row.incidentId)].map(([id, of]) => [id, of.map(({ slug }) => slug)]),
  );
}
