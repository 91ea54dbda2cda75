import { and, eq } from "drizzle-orm";
import { flowStep } from "../../../drizzle/schema/index.ts";
import { NotFound } from "../../../platform/errors.ts";
import { nameLength, parseText } from "../../../platform/text.ts";
import type { Actor, Context } from "../../context.ts";
import { lockIncident } from "../incident/lock.ts";
import { planSteps } from "./plan.ts";

/**
 * Sets the failed steps of an incident due now, or the one that is named: that one also when it is done. Whoever may
 * read the incident may ask; `runFlow` does it.
 *
 * @throws InvalidInput
 * @throws NotFound also when the actor may not read the incident, and when it has no such step
 */
export async function retryFlow(
  { db, clock }: Context,
  actor: Actor,
  { incidentId, ...asked }: { incidentId: number; step?: string },
): Promise<void> {
  const step = asked.step && parseText("step", asked.step, nameLength);
  const at = clock.now();
  await db.transaction(async (tx) => {
    await lockIncident(tx, actor, incidentId);
    const wanted = step === undefined ? eq(flowStep.state, "Failed") : eq(flowStep.step, step);
    const steps = await tx
      .select({ step: flowStep.step, state: flowStep.state })
      .from(flowStep)
      .where(and(eq(flowStep.incidentId, incidentId), wanted));
    if (step !== undefined && steps.length === 0) throw new NotFound("This incident has no such step");
    const idle = steps.filter(({ state }) => state !== "Running").map((one) => one.step);
    await planSteps(tx, { incidentId, at }, idle);
  });
}
