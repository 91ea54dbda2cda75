import { sql } from "drizzle-orm";
import type { Transaction } from "../../../drizzle/client.ts";
import { flowStep } from "../../../drizzle/schema/index.ts";
import type { Plugins } from "../../plugin/choose.ts";

export interface Planned {
  incidentId: number;
  at: Date;
  plugins: Plugins;
}

/** Writes down what follows from a report, in its transaction. `runFlow` does it. */
export async function planFlow(tx: Transaction, { incidentId, at, plugins }: Planned): Promise<void> {
  await planSteps(tx, { incidentId, at }, stepsOfReport(plugins));
}

/** A type of plugin that is off has no step: choosing one later changes nothing of incidents that are there. */
function stepsOfReport(plugins: Plugins): string[] {
  const chosen = (type: Parameters<Plugins["ofType"]>[0]) => plugins.ofType(type).length > 0;
  return [
    ...(chosen("participant") ? ["reported:participants"] : []),
    "reported:commander",
    ...(chosen("document-resolver") || chosen("document") ? ["reported:documents"] : []),
    ...plugins.ofType("conversation").map(({ slug }) => `reported:conversation:${slug}`),
    ...plugins.ofType("participant_group").map(({ slug }) => `reported:group:${slug}`),
  ];
}

/**
 * Sets steps due, also such as were done before. One that is running goes on and is due again afterwards: it may have
 * read what is changed now. Its last error stays, so that the same one is not told twice.
 */
export async function planSteps(
  tx: Transaction,
  { incidentId, at }: Omit<Planned, "plugins">,
  steps: readonly string[],
): Promise<void> {
  if (steps.length === 0) return;
  const running = sql`${flowStep.state} = 'Running'`;
  await tx
    .insert(flowStep)
    // In one order, so that two who plan the same steps wait for one another and never in a circle.
    .values(steps.toSorted().map((step) => ({ incidentId, step, dueAt: at })))
    .onConflictDoUpdate({
      target: [flowStep.incidentId, flowStep.step],
      set: {
        state: sql`case when ${running} then 'Running' else 'Pending' end`,
        attempts: sql`case when ${running} then ${flowStep.attempts} else 0 end`,
        dueAt: at,
        finishedAt: null,
      },
    });
}
