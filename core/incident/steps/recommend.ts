import { sql } from "drizzle-orm";
import type { Transaction } from "../../../drizzle/client.ts";
import { recommendation } from "../../../drizzle/schema/index.ts";
import type { RecommendationReason } from "../../../drizzle/schema/recommendation.ts";

export interface Recommended {
  incidentId: number;
  /** Who proposes it. */
  pluginSlug: string;
  reasons: RecommendationReason[];
  at: Date;
}

const targets = {
  document: recommendation.documentId,
  individual: recommendation.individualId,
  team: recommendation.teamId,
};

/** Stores the reasons of a proposal, replacing earlier ones. Returns whether it is a new proposal. */
export async function recommend(
  tx: Transaction,
  kind: keyof typeof targets,
  id: number,
  { incidentId, pluginSlug, reasons, at }: Recommended,
): Promise<boolean> {
  const [row] = await tx
    .insert(recommendation)
    .values({ incidentId, pluginSlug, reasons, createdAt: at, [`${kind}Id`]: id })
    .onConflictDoUpdate({
      target: [recommendation.incidentId, targets[kind], recommendation.pluginSlug],
      set: { reasons },
    })
    // Zero for a row that was just inserted.
    .returning({ isNew: sql<boolean>`xmax = 0` });
  return row?.isNew ?? false;
}
