import { and, asc, eq, gt, isNull, lte, ne, or, type SQL, sql } from "drizzle-orm";
import { alias, type PgUpdateSetSource } from "drizzle-orm/pg-core";
import type { Transaction } from "../../../drizzle/client.ts";
import { flowStep } from "../../../drizzle/schema/index.ts";
import { after } from "../../../platform/clock.ts";
import { NotFound } from "../../../platform/errors.ts";
import type { Context } from "../../context.ts";
import { dueAgain } from "../../outbox/backoff.ts";
import { lockIncident } from "../incident/lock.ts";
import { type TimelineEvent, recordEvent as tell } from "../timeline/event.ts";

// A step belongs to whoever has claimed it, until `lease_until`; afterwards its process counts as dead and another one
// takes it over. `lease_until` also tells the claims of a step apart: who no longer finds their own can neither write
// nor finish. While a step runs, `due_at` is its lease too, unless it was set due again (see planSteps).

/** Beyond what a plugin may take: our own work between two of its answers. */
const marginSeconds = 30;
/** How much of the margin may be gone before a lease is made longer. */
const spentSeconds = 5;

export interface Claim {
  incidentId: number;
  step: string;
  /** This one included. */
  attempts: number;
  leaseUntil: Date;
  /** Why it failed the last time. */
  error: string | null;
  turn: Turn;
}

/**
 * Ends with what is being written under the claims that were taken together. They have one: each holds their incident
 * while it writes, and who waits for that in PostgreSQL waits with a connection that others need.
 */
interface Turn {
  last: Promise<unknown>;
}

/** Somebody else has the step by now, or its incident is gone. */
export class LeaseLost extends Error {}

function leaseFrom({ config }: Pick<Context, "config">, at: Date): Date {
  return after(at, config.pluginTimeout + marginSeconds);
}

/** Due now, and with nobody: in any state but Done. */
export function isDue(at: Date): SQL | undefined {
  return and(ne(flowStep.state, "Done"), isFree(at));
}

/**
 * As `isDue`, of one incident. A state that is not Done would have PostgreSQL walk all such steps of all incidents, which
 * it believes to be none: `finished_at` says the same and is in no index.
 */
function isDueOfOne(at: Date): SQL | undefined {
  return and(isNull(flowStep.finishedAt), isFree(at));
}

function isFree(at: Date): SQL | undefined {
  return and(lte(flowStep.dueAt, at), or(isNull(flowStep.leaseUntil), lte(flowStep.leaseUntil, at)));
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

/** Takes all steps of the incident that are due. What another one is just taking stays with them. */
export async function claimDue(context: Context, incidentId: number): Promise<Claim[]> {
  const { db, clock } = context;
  const at = clock.now();
  const leaseUntil = leaseFrom(context, at);
  const due = db
    .select({ step: flowStep.step })
    .from(flowStep)
    .where(and(eq(flowStep.incidentId, incidentId), isDueOfOne(at), notBesideItsOther(at)))
    .orderBy(asc(flowStep.step))
    .for("update", { skipLocked: true });
  const claimed = await db
    .update(flowStep)
    .set({ state: "Running", leaseUntil, dueAt: leaseUntil, attempts: sql`${flowStep.attempts} + 1` })
    .where(and(eq(flowStep.incidentId, incidentId), isDueOfOne(at), sql`${flowStep.step} in ${due}`))
    .returning({ step: flowStep.step, attempts: flowStep.attempts, error: flowStep.error })
    .prepare("claim_due")
    .execute();
  const turn = { last: Promise.resolve() };
  return claimed.map((claim) => ({ incidentId, leaseUntil, turn, ...claim }));
}

/** It has our lease, so it is Running: to say so would lead PostgreSQL astray (see `isDueOfOne`). */
const isOurs = ({ incidentId, step, leaseUntil }: Claim) =>
  and(eq(flowStep.incidentId, incidentId), eq(flowStep.step, step), eq(flowStep.leaseUntil, leaseUntil));

/** What is done beside each other in a step writes one after the other: a longer lease is another one to `isOurs`. */
async function inTurn<T>({ turn }: Claim, work: () => Promise<T>): Promise<T> {
  const mine = turn.last.then(work);
  turn.last = mine.catch(() => {});
  return await mine;
}

/** Nobody has set it due again since it was claimed. */
const asClaimed = sql`${flowStep.dueAt} = ${flowStep.leaseUntil}`;
const unlessDueAgain = (otherwise: SQL) =>
  sql`case when ${asClaimed} then ${otherwise} else ${flowStep.dueAt} end`;
const timestamp = (at: Date | null) => sql`${at?.toISOString() ?? null}::timestamptz`;

/**
 * Makes the lease about as long as it was at first, before work that may take as long.
 * @throws LeaseLost where it has to ask: a lease that is as good as new is still ours
 */
export async function renew(context: Context, claim: Claim): Promise<void> {
  await inTurn(claim, async () => {
    const leaseUntil = leaseFrom(context, context.clock.now());
    if (leaseUntil <= after(claim.leaseUntil, spentSeconds)) return;
    const dueAt = unlessDueAgain(timestamp(leaseUntil));
    const [ours] = await context.db
      .update(flowStep)
      .set({ leaseUntil, dueAt })
      .where(isOurs(claim))
      .returning({ step: flowStep.step });
    if (!ours) throw new LeaseLost();
    claim.leaseUntil = leaseUntil;
  });
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
    const [ours] = await tx.select({ step: flowStep.step }).from(flowStep).where(isOurs(claim)).for("update");
    if (!ours) throw new LeaseLost();
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
  await end(
    context,
    claim,
    {
      state: sql`case when ${asClaimed} then 'Done' else 'Pending' end`,
      attempts: sql`case when ${asClaimed} then ${flowStep.attempts} else 0 end`,
      finishedAt: sql`case when ${asClaimed} then ${timestamp(at)} end`,
      dueAt: sql`case when not ${asClaimed} then ${flowStep.dueAt} end`,
      error: null,
    },
    done === undefined ? undefined : { at, kind: "step.done", description: done },
  );
}

/**
 * Ends a step that could not do its work; the same reason as the last time is not told again. One that would fail each
 * time (`permanent`) waits for a person to ask for it.
 *
 * @throws LeaseLost
 */
export async function fail(
  context: Context,
  claim: Claim,
  error: string,
  { permanent = false }: { permanent?: boolean } = {},
): Promise<void> {
  const at = context.clock.now();
  const dueAt = unlessDueAgain(timestamp(permanent ? null : dueAgain(at, claim.attempts)));
  const told = { at, kind: "step.failed" as const, description: error };
  await end(context, claim, { state: "Failed", error, dueAt }, error === claim.error ? undefined : told);
}

async function end(
  context: Context,
  claim: Claim,
  set: PgUpdateSetSource<typeof flowStep>,
  told: Pick<TimelineEvent, "at" | "kind" | "description"> | undefined,
): Promise<void> {
  const { incidentId, step } = claim;
  await withIncident(context, claim, async (tx) => {
    const [ours] = await tx
      .update(flowStep)
      .set({ ...set, leaseUntil: null })
      .where(isOurs(claim))
      .returning({ step: flowStep.step });
    if (!ours) throw new LeaseLost();
    if (told)
      await tell(tx, { ...told, incidentId, actor: "system", source: sourceOf(step), data: { step } });
  });
}

/**
 * Ends a step that was cut short by ourselves, as though it had not been begun: it is due in so many seconds.
 * @throws LeaseLost
 */
export async function giveBack(context: Context, claim: Claim, seconds = 0): Promise<void> {
  const dueAt = unlessDueAgain(timestamp(after(context.clock.now(), seconds)));
  const [ours] = await context.db
    .update(flowStep)
    .set({ state: "Pending", leaseUntil: null, dueAt, attempts: claim.attempts - 1 })
    .where(isOurs(claim))
    .returning({ step: flowStep.step });
  if (!ours) throw new LeaseLost();
}

/** The slug of the plugin that a step is about, if it is about one. */
function sourceOf(step: string): string {
  return step.split(":")[2] ?? "core";
}
