import { and, eq, gt, isNull, lte, ne, or, type SQL, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { Transaction } from "../../../drizzle/client.ts";
import { flowStep } from "../../../drizzle/schema/index.ts";
import { NotFound } from "../../../platform/errors.ts";
import type { Context } from "../../context.ts";
import {
  claimWork,
  type Failure,
  failWork,
  finishWork,
  giveBackWork,
  holdClaim,
  isDue,
  LeaseLost,
  renewLease,
  type Claim as WorkClaim,
  type WorkKind,
} from "../../outbox/work.ts";
import { lockIncident } from "../incident/lock.ts";
import { recordEvent, type TimelineEvent } from "../timeline/event.ts";

// Steps as a kind of durable work. What a step writes, it writes with its incident locked.

const kind: WorkKind<StepClaim> = {
  table: flowStep,
  isRow: ({ incidentId, step }) => and(eq(flowStep.incidentId, incidentId), eq(flowStep.step, step)),
  // One that is dead stays Failed: anybody who may read the incident may ask for it.
  states: { waiting: "Pending", running: "Running", failed: "Failed", done: "Done" },
};

interface StepClaim extends WorkClaim {
  incidentId: number;
  step: string;
}

export interface Claim extends StepClaim {
  turn: Turn;
}

/**
 * Ends with what is being written under the claims that were taken together. They have one: each holds their incident
 * while it writes, and who waits for that in PostgreSQL waits with a connection that others need.
 */
interface Turn {
  last: Promise<unknown>;
}

/** Due, of any incident: as the index of what is due has it. */
export function isStepDue(at: Date): SQL | undefined {
  return and(ne(flowStep.state, "Done"), isDue(flowStep, at));
}

const other = alias(flowStep, "other");

/**
 * What makes a group and what keeps it up to date never run beside each other: an addition that is under way would end
 * behind the removal of who has left meanwhile, and nobody would take them out again. Making goes first.
 */
function notBesideItsOther(at: Date): SQL {
  const { step } = flowStep;
  const its = sql`case
    when ${step} like 'joined:%' then 'reported:' || substr(${step}, ${"joined:".length + 1})
    when ${step} like 'reported:%' then 'joined:' || substr(${step}, ${"reported:".length + 1}) end`;
  // Whatever has a lease is running, and what is finished is done.
  const running = gt(other.leaseUntil, at);
  const first = and(sql`${step} like 'joined:%'`, isNull(other.finishedAt), lte(other.dueAt, at));
  return sql`not exists (select from ${flowStep} as "other"
    where ${other.incidentId} = ${flowStep.incidentId} and ${other.step} = ${its} and ${or(running, first)})`;
}

/** Of an incident, far more than there are. */
const mostSteps = 1000;

/**
 * Claims all steps of the incident that are due. It does not say `isStepDue`: a state that is not Done would have
 * PostgreSQL walk all such steps of all incidents, which it believes to be none.
 */
export async function claimDue(context: Context, incidentId: number): Promise<Claim[]> {
  const among = and(eq(flowStep.incidentId, incidentId), notBesideItsOther(context.clock.now()));
  const claims = await claimWork(context, kind, {
    among,
    order: [flowStep.step],
    limit: mostSteps,
  });
  const turn: Turn = { last: Promise.resolve() };
  return claims.map((claim) => ({ ...claim, turn }));
}

/** What is done beside each other in a step writes one after the other: a longer lease is another one to `isOurs`. */
async function inTurn<T>({ turn }: Claim, work: () => Promise<T>): Promise<T> {
  const mine = turn.last.then(work);
  turn.last = mine.catch(() => {});
  return await mine;
}

/** @throws LeaseLost */
export async function renew(context: Context, claim: Claim): Promise<void> {
  await inTurn(claim, () => renewLease(context, kind, claim));
}

/**
 * Writes what a step has found out, with its incident locked, if the step is still ours.
 * @throws LeaseLost
 */
export async function writeAs<T>(
  context: Context,
  claim: Claim,
  work: (tx: Transaction) => Promise<T>,
): Promise<T> {
  return await withIncident(context, claim, async (tx) => {
    await holdClaim(tx, kind, claim);
    return await work(tx);
  });
}

/** One transaction at a time. @throws LeaseLost when the incident is gone */
async function withIncident<T>(
  { db }: Context,
  claim: Claim,
  work: (tx: Transaction) => Promise<T>,
): Promise<T> {
  return await inTurn(claim, () =>
    db.transaction(async (tx) => {
      // The incident first, as does everybody who changes something of it and then plans steps.
      await lockIncident(tx, "worker", claim.incidentId).catch((error: unknown) => {
        throw error instanceof NotFound ? new LeaseLost() : error;
      });
      return await work(tx);
    }),
  );
}

/** Ends a step that has done its work; `done` says on the timeline what that was. @throws LeaseLost */
export async function finish(context: Context, claim: Claim, done: string | undefined): Promise<void> {
  const at = context.clock.now();
  await withIncident(context, claim, async (tx) => {
    await finishWork(tx, kind, claim, at);
    if (done !== undefined) await recordEventOf(tx, claim, { at, kind: "step.done", description: done });
  });
}

/** Ends a step that could not do its work; the same reason as the last time is not told again. @throws LeaseLost */
export async function fail(context: Context, claim: Claim, failure: Failure): Promise<void> {
  const at = context.clock.now();
  await withIncident(context, claim, async (tx) => {
    await failWork(tx, kind, claim, at, failure);
    if (failure.reason !== claim.error)
      await recordEventOf(tx, claim, { at, kind: "step.failed", description: failure.reason });
  });
}

async function recordEventOf(
  tx: Transaction,
  { incidentId, step }: Claim,
  told: Pick<TimelineEvent, "at" | "kind" | "description">,
): Promise<void> {
  await recordEvent(tx, { ...told, incidentId, actor: "system", source: sourceOf(step), data: { step } });
}

/** As though it had not been begun: it is due in so many seconds. @throws LeaseLost */
export async function giveBack({ db, clock }: Context, claim: Claim, seconds: number): Promise<void> {
  await giveBackWork(db, kind, claim, clock.now(), seconds);
}

/** The slug of the plugin that a step is about, if it is about one. */
function sourceOf(step: string): string {
  return step.split(":")[2] ?? "core";
}
