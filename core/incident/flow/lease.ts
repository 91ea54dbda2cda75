import { and, eq, gt, isNull, lte, ne, or, type SQL, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { Transaction } from "../../../drizzle/client.ts";
import { delivery, flowStep } from "../../../drizzle/schema/index.ts";
import { together } from "../../../drizzle/together.ts";
import type { Clock } from "../../../platform/clock.ts";
import { NotFound } from "../../../platform/errors.ts";
import type { Context } from "../../context.ts";
import {
  claimWork,
  dueNow,
  extendWork,
  type Failure,
  failWork,
  finishWork,
  holdClaims,
  isDue,
  LeaseLost,
  releaseWork,
  type Claim as WorkClaim,
  type WorkKind,
} from "../../outbox/work.ts";
import { lockIncident } from "../incident/lock.ts";
import { recordEvent, type TimelineEvent } from "../timeline/event.ts";

// Steps as a kind of durable work. A step writes with its incident locked.

export interface StepContext extends Context {
  /**
   * Decides which steps are due and whose they are: the database's time, because all processes share it. `clock` without
   * one. Timelines always have the times of `clock`, or a step could seem to happen before its cause.
   */
  stepClock?: Clock;
}

export const stepTime = ({ stepClock, clock }: StepContext): Date => (stepClock ?? clock).now();
const onStepTime = (context: StepContext): Context => ({
  ...context,
  clock: context.stepClock ?? context.clock,
});

const kind: WorkKind<StepClaim> = {
  table: flowStep,
  isRow: ({ incidentId, step }) => and(eq(flowStep.incidentId, incidentId), eq(flowStep.step, step)),
  // A dead step stays Failed: anyone who may read the incident may retry it.
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
 * Resolves after the pending writes of the claims that were taken together. They share one turn, because each locks the
 * incident while it writes, and waiting for that in PostgreSQL would occupy a connection that others need.
 */
interface Turn {
  last: Promise<unknown>;
  /** The transaction in which they run, with their incident and rows locked. */
  tx?: Transaction;
}

/** Due steps of any incident, written like the index. */
export function isStepDue(at: Date): SQL | undefined {
  return and(ne(flowStep.state, "Done"), isDue(flowStep, at));
}

const counterpart = alias(flowStep, "counterpart");

/**
 * Keeps the step that creates a group and the one that updates it from running at the same time. Otherwise an addition
 * in progress could finish after the removal of people who have left meanwhile, and nobody would remove them again. The
 * creation comes first.
 */
function noConflictingStep(at: Date): SQL {
  const { step } = flowStep;
  const conflicting = sql`case
    when ${step} like 'joined:%' then 'reported:' || substr(${step}, ${"joined:".length + 1})
    when ${step} like 'reported:%' then 'joined:' || substr(${step}, ${"reported:".length + 1}) end`;
  // A step with a lease is running, and a finished one is done.
  const running = gt(counterpart.leaseUntil, at);
  const first = and(sql`${step} like 'joined:%'`, isNull(counterpart.finishedAt), lte(counterpart.dueAt, at));
  return sql`not exists (select from ${flowStep} as "counterpart"
    where ${counterpart.incidentId} = ${flowStep.incidentId} and ${counterpart.step} = ${conflicting} and ${or(running, first)})`;
}

/** The limit per incident, far more than there are. */
const mostSteps = 1000;

/**
 * Claims all due steps of the incident. It does not use `isStepDue`: with its condition on the state, PostgreSQL would
 * walk the unfinished steps of all incidents, because it expects none.
 */
export async function claimDue(context: StepContext, incidentId: number): Promise<Claim[]> {
  const among = and(eq(flowStep.incidentId, incidentId), noConflictingStep(stepTime(context)));
  const claims = await claimWork(onStepTime(context), kind, {
    among,
    order: [flowStep.step],
    limit: mostSteps,
    prepared: "claim_steps",
  });
  const turn: Turn = { last: Promise.resolve() };
  return claims.map((claim) => ({ ...claim, turn }));
}

/**
 * Runs the writes of concurrent parts of a step one after the other, because `isHeld` fails once the lease is extended.
 */
async function inTurn<T>({ turn }: Claim, work: () => Promise<T>): Promise<T> {
  if (turn.tx) return await work();
  const mine = turn.last.then(work);
  turn.last = mine.catch(() => {});
  return await mine;
}

/** @throws LeaseLost */
export async function renew(context: StepContext, claim: Claim): Promise<void> {
  await inTurn(claim, () => extendWork(onStepTime(context), kind, claim));
}

/**
 * Writes a step's findings with its incident locked, if the step is still ours.
 * @throws LeaseLost
 */
export async function writeAs<T>(
  context: Context,
  claim: Claim,
  work: (tx: Transaction) => Promise<T>,
): Promise<T> {
  if (claim.turn.tx) return await work(claim.turn.tx);
  return await withIncident(context, claim, async (tx) => {
    await holdClaims(tx, kind, [claim]);
    return await work(tx);
  });
}

/** Runs one transaction at a time. @throws LeaseLost when the incident is gone */
async function withIncident<T>(
  { db }: Context,
  claim: Claim,
  work: (tx: Transaction) => Promise<T>,
): Promise<T> {
  const { tx } = claim.turn;
  if (tx) return await work(tx);
  return await inTurn(claim, () =>
    db.transaction(async (tx) => {
      await lockOf(tx, claim);
      return await work(tx);
    }),
  );
}

/**
 * Locks the incident of a claim, which comes first, as for everyone who changes something of it and then plans steps.
 * @throws LeaseLost when it is gone
 */
async function lockOf(tx: Transaction, { incidentId }: Claim): Promise<void> {
  await lockIncident(tx, "worker", incidentId).catch((error: unknown) => {
    throw error instanceof NotFound ? new LeaseLost() : error;
  });
}

/**
 * Runs steps of one incident in a single transaction with it locked, if all of them are still ours. If `work` fails,
 * nothing has happened, and the claims are as before. `work` gets claims for within the transaction, and must not leave
 * anything running.
 *
 * @throws LeaseLost
 */
export async function runAs(
  { db }: Context,
  claims: readonly Claim[],
  work: (tx: Transaction, claims: Claim[]) => Promise<void>,
): Promise<void> {
  await db.transaction(async (tx) => {
    await lockOf(tx, claims[0]!);
    await holdClaims(tx, kind, claims);
    const turn: Turn = { last: Promise.resolve(), tx };
    await work(
      tx,
      claims.map((claim) => ({ ...claim, turn })),
    );
  });
}

/** Ends a step that is done. `done` describes the work on the timeline. @throws LeaseLost */
export async function finish(context: StepContext, claim: Claim, done: string | undefined): Promise<void> {
  await withIncident(context, claim, async (tx) => {
    const at = stepTime(context);
    const told = { at: context.clock.now(), kind: "step.done" } as const;
    // Sent together: if the step is no longer ours, the event is rolled back.
    await together([
      finishWork(hasteningWaiting(tx, claim, at), kind, claim, at),
      done !== undefined && recordEventOf(tx, claim, { ...told, description: done }),
    ]);
  });
}

/** Steps for which messages wait: those that open a conversation, and that restrict it. */
const awaited = ["reported", "reopened", "restricted"];

/**
 * Returns a writer whose statement also makes waiting messages due: their own pauses may be as long as an hour by now.
 */
function hasteningWaiting(
  tx: Transaction,
  { incidentId, step }: Claim,
  at: Date,
): Parameters<typeof finishWork>[0] {
  const [on = "", what, slug = ""] = step.split(":");
  if (what !== "conversation" || !awaited.includes(on)) return tx;
  const hastened = tx
    .update(delivery)
    .set({ dueAt: dueNow(at), attempts: 0 })
    .where(
      and(
        eq(delivery.incidentId, incidentId),
        eq(delivery.pluginSlug, slug),
        eq(delivery.state, "Queued"),
        isNull(delivery.leaseUntil),
      ),
    )
    .returning({ key: delivery.key });
  return tx.with(tx.$with("hastened").as(hastened));
}

/** Ends a step that failed. The timeline does not repeat the previous reason. @throws LeaseLost */
export async function fail(context: StepContext, claim: Claim, failure: Failure): Promise<void> {
  await withIncident(context, claim, async (tx) => {
    await failWork(tx, kind, claim, stepTime(context), failure);
    const at = context.clock.now();
    if (failure.reason !== claim.error)
      await recordEventOf(tx, claim, { at, kind: "step.failed", description: failure.reason });
  });
}

async function recordEventOf(
  tx: Transaction,
  { incidentId, step }: Claim,
  entry: Pick<TimelineEvent, "at" | "kind" | "description">,
): Promise<void> {
  await recordEvent(tx, { ...entry, incidentId, actor: "system", source: sourceOf(step), data: { step } });
}

/** As if it had not begun: it is due in this many seconds. @throws LeaseLost */
export async function release(context: StepContext, claim: Claim, seconds: number): Promise<void> {
  await releaseWork(context.db, kind, claim, stepTime(context), seconds);
}

/** The slug of the step's plugin, or core. */
function sourceOf(step: string): string {
  return step.split(":")[2] ?? "core";
}
