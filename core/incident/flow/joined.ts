import { and, eq, inArray } from "drizzle-orm";
import type { Transaction } from "../../../drizzle/client.ts";
import { flowStep } from "../../../drizzle/schema/index.ts";
import { type Planned, planSteps } from "./plan.ts";

/**
 * Writes down, in the transaction of who joined or left, that conversations and groups of the incident are to follow.
 * The caller holds `lockIncident`.
 *
 * `except` are steps that have yet to read who takes part.
 */
export async function planJoined(
  tx: Transaction,
  { incidentId, at, plugins }: Planned,
  except: ReadonlySet<string> = new Set(),
): Promise<void> {
  const reported = [
    ...plugins.ofType("conversation").map(({ slug }) => `reported:conversation:${slug}`),
    ...plugins.ofType("participant_group").map(({ slug }) => `reported:group:${slug}`),
  ].filter((step) => !except.has(step));
  if (reported.length === 0) return;
  // A plugin that was chosen later has made nothing for this incident.
  const there = await tx
    .select({ step: flowStep.step })
    .from(flowStep)
    .where(and(eq(flowStep.incidentId, incidentId), inArray(flowStep.step, reported)));
  const steps = there.map(({ step }) => step.replace("reported:", "joined:"));
  await planSteps(tx, { incidentId, at }, steps);
}
