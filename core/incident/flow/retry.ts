import { and, eq } from "drizzle-orm";
import { flowStep, incident } from "../../../drizzle/schema/index.ts";
import { Conflict, NotFound } from "../../../platform/errors.ts";
import { nameLength, parseText } from "../../../platform/text.ts";
import { audit } from "../../audit.ts";
import type { Actor, Context } from "../../context.ts";
import { stepKey } from "../../outbox/list.ts";
import { resendDelivery } from "../../outbox/resend.ts";
import { lockIncident } from "../incident/lock.ts";
import { planSteps } from "./plan.ts";

/**
 * Makes the failed steps of an incident due now, or the named step, even if it is done. Anyone who may read the
 * incident may ask for this. `runFlow` runs them.
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
  await db.transaction(async (tx) => {
    await lockIncident(tx, actor, incidentId);
    const at = clock.now();
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

/**
 * For operators: resets the attempts of a dead delivery or a failed step, and makes it due now. `key` is the one in
 * `listWork`; `by` is the user who asks for it on a page, for the audit log.
 *
 * @throws NotFound
 * @throws Conflict when it is being retried anyway, or is done
 */
export async function retryWork(
  context: Pick<Context, "clock" | "db"> & { by?: string },
  key: string,
): Promise<void> {
  const { db, clock, by = "system" } = context;
  const [found] = await db
    .select({ incidentId: flowStep.incidentId, step: flowStep.step })
    .from(flowStep)
    .innerJoin(incident, eq(incident.id, flowStep.incidentId))
    .where(eq(stepKey, key));
  if (!found) return await resendDelivery(context, key);
  const { incidentId, step } = found;
  await db.transaction(async (tx) => {
    await lockIncident(tx, "worker", incidentId);
    const at = clock.now();
    const [{ state } = { state: undefined }] = await tx
      .select({ state: flowStep.state })
      .from(flowStep)
      .where(and(eq(flowStep.incidentId, incidentId), eq(flowStep.step, step)));
    if (state !== "Failed")
      throw new Conflict(`Only a failed step can be retried: this step is ${state ?? "gone"}`);
    await planSteps(tx, { incidentId, at }, [step]);
    await audit(tx, { at, actor: by, action: "step.retried", subject: key });
  });
}
