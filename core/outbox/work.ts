import { and, isNull, lte, or, type SQL, sql } from "drizzle-orm";
import type { PgColumn, PgTable } from "drizzle-orm/pg-core";
import type { Database, Transaction } from "../../drizzle/client.ts";
import type { workColumns } from "../../drizzle/schema/work.ts";
import { after } from "../../platform/clock.ts";
import { Refused, SvcError } from "../../platform/errors.ts";
import type { Context } from "../context.ts";

// Durable work: what has to be done outside the database at least once. It is a row of a table that has the `workColumns`,
// written in the transaction that makes it necessary, so a crash loses none of it.
//
// Work belongs to the process that has claimed it until `lease_until`; afterwards that process counts as dead and another
// one may claim it. `lease_until` also tells the claims of one row apart: a process that no longer finds its own can
// neither write nor finish. While work is under way `due_at` equals its lease, so one index finds both what is due and
// what a dead process left; and where it differs, the work was set due again meanwhile and is not over when it ends.
//
// docs/architecture.md says why this is a table of ours and not a library.

/** How often work is begun before it waits for a person. */
export const mostAttempts = 10;
/** Beyond what a plugin may take: our own work between two of its answers. */
const marginSeconds = 30;
const postponedSeconds = 5;
/** How much of the margin may be gone before a lease is made longer. */
const spentSeconds = 5;

/** The wait before the second attempt, which doubles each time, up to `longestSeconds`; and after how many it is dead. */
export interface Backoff {
  firstSeconds: number;
  longestSeconds: number;
  /** Infinity: it is never dead. */
  mostAttempts: number;
}

const usualBackoff: Backoff = { firstSeconds: 30, longestSeconds: 3600, mostAttempts };

/** When work whose attempt number `attempts` has failed is due again; null: when a person asks for it. */
export function dueAgain(at: Date, attempts: number, backoff = usualBackoff): Date | null {
  if (attempts >= backoff.mostAttempts) return null;
  return after(at, Math.min(backoff.firstSeconds * 2 ** (attempts - 1), backoff.longestSeconds));
}

type WorkTable = PgTable & Record<"state" | keyof typeof workColumns, PgColumn>;

/** One kind of durable work: its table, and the names that its states have there. */
export interface WorkKind<C extends Claim> {
  table: WorkTable;
  isRow(claim: C): SQL | undefined;
  states: {
    waiting: string;
    running: string;
    /** It failed, and is tried again. */
    failed: string;
    done: string;
    /** Nobody tries it any more, and it counts as finished; without it, it stays `failed` and waits for a person. */
    dead?: string;
  };
  /** Ten attempts, the last ones an hour apart, unless told. */
  backoff?: Backoff;
}

export interface Claim {
  /** This one included. */
  attempts: number;
  leaseUntil: Date;
  /** Why it failed the last time. */
  error: string | null;
}

/** Another process has the work by now, or it is gone with what it was about. */
export class LeaseLost extends Error {}

type WorkContext = Pick<Context, "clock" | "config"> & { db: Database };
type Writer = Pick<Transaction, "update" | "select">;

function leaseFrom({ config }: Pick<Context, "config">, at: Date): Date {
  return after(at, config.pluginTimeout + marginSeconds);
}

const timestamp = (at: Date | null) => sql`${at?.toISOString() ?? null}::timestamptz`;

/**
 * For work that is due at once: also where the clock of the process that writes it is ahead of those of the workers, which
 * go by the database's.
 */
export function dueNow(clock: Context["clock"]): SQL<Date> {
  return sql`least(${timestamp(clock.now())}, now())`;
}

/** Due, and claimed by nobody who lives. */
export function isDue({ finishedAt, dueAt, leaseUntil }: WorkTable, at: Date): SQL | undefined {
  return and(isNull(finishedAt), lte(dueAt, at), or(isNull(leaseUntil), lte(leaseUntil, at)));
}

/** Where PostgreSQL keeps a row at the moment: for one statement, a key that every table has. */
const place = sql`ctid`;

/** Claims what is due among these rows, in that order. What another process is just claiming stays with that one. */
export async function claimWork<C extends Claim>(
  context: WorkContext,
  { table, states }: WorkKind<C>,
  { among, order, limit }: { among: SQL | undefined; order: PgColumn[]; limit: number },
): Promise<C[]> {
  const { db, clock } = context;
  const at = clock.now();
  const leaseUntil = leaseFrom(context, at);
  const rows = db
    .select({ place })
    .from(table)
    .where(and(among, isDue(table, at)))
    .orderBy(...order)
    .limit(limit)
    .for("update", { skipLocked: true });
  const set = { state: states.running, leaseUntil, dueAt: leaseUntil, attempts: sql`${table.attempts} + 1` };
  const claimed = await db
    .update(table)
    .set(set as never)
    // As an array, which PostgreSQL makes once: it might run a subquery several times, and each time find other rows that
    // are free. They are locked by now, so `among`, which may be dear, is not asked again.
    .where(sql`${place} = any (array(${rows}))`)
    .returning();
  return claimed as unknown as C[];
}

/** The row of a claim, while it is still the claim's. */
export function isOurs<C extends Claim>({ table, isRow }: WorkKind<C>, claim: C): SQL | undefined {
  return and(isRow(claim), sql`${table.leaseUntil} = ${timestamp(claim.leaseUntil)}`);
}

/** Writes to the row of a claim. @throws LeaseLost */
async function write<C extends Claim>(
  db: Writer,
  kind: WorkKind<C>,
  claim: C,
  set: Partial<Record<"state" | keyof typeof workColumns, unknown>>,
): Promise<void> {
  const written = await db
    .update(kind.table)
    .set(set as never)
    .where(isOurs(kind, claim))
    .returning({ place });
  if (written.length === 0) throw new LeaseLost();
}

/** Locks the row of a claim for the rest of the transaction. @throws LeaseLost */
export async function holdClaim<C extends Claim>(tx: Writer, kind: WorkKind<C>, claim: C): Promise<void> {
  const [ours] = await tx.select({ place }).from(kind.table).where(isOurs(kind, claim)).for("update");
  if (!ours) throw new LeaseLost();
}

/** Not set due again since it was claimed. */
const asClaimed = ({ dueAt, leaseUntil }: WorkTable) => sql`${dueAt} = ${leaseUntil}`;
const unlessDueAgain = (table: WorkTable, otherwise: SQL) =>
  sql`case when ${asClaimed(table)} then ${otherwise} else ${table.dueAt} end`;

/**
 * Makes the lease about as long as it was at first, before work that may take as long.
 * @throws LeaseLost where it has to ask: a lease that is as good as new is still ours
 */
export async function renewLease<C extends Claim>(
  context: WorkContext,
  kind: WorkKind<C>,
  claim: C,
): Promise<void> {
  const leaseUntil = leaseFrom(context, context.clock.now());
  if (leaseUntil <= after(claim.leaseUntil, spentSeconds)) return;
  await write(context.db, kind, claim, {
    leaseUntil,
    dueAt: unlessDueAgain(kind.table, timestamp(leaseUntil)),
  });
  claim.leaseUntil = leaseUntil;
}

/** Notes that the work is done, with these columns of its own. @throws LeaseLost */
export async function finishWork<C extends Claim>(
  db: Writer,
  kind: WorkKind<C>,
  claim: C,
  at: Date,
  state: string = kind.states.done,
): Promise<void> {
  const { table, states } = kind;
  const over = asClaimed(table);
  await write(db, kind, claim, {
    state: sql`case when ${over} then ${state} else ${states.waiting} end`,
    attempts: sql`case when ${over} then ${table.attempts} else 0 end`,
    finishedAt: sql`case when ${over} then ${timestamp(at)} end`,
    dueAt: sql`case when not ${over} then ${table.dueAt} end`,
    error: null,
    leaseUntil: null,
  });
}

/** A reason for people, and whether each other attempt would fail by it as well. */
export interface Failure {
  reason: string;
  permanent?: boolean;
}

/**
 * Notes that an attempt has failed. Work that fails for good, or has had all of its attempts, is dead: it waits for a
 * person to ask for it.
 *
 * @throws LeaseLost
 */
export async function failWork<C extends Claim>(
  db: Writer,
  kind: WorkKind<C>,
  claim: C,
  at: Date,
  { reason, permanent = false }: Failure,
): Promise<"again" | "dead"> {
  const { table, states, backoff } = kind;
  const dueAt = permanent ? null : dueAgain(at, claim.attempts, backoff);
  const finished = dueAt === null && states.dead !== undefined;
  await write(db, kind, claim, {
    state: finished ? states.dead : states.failed,
    error: reason,
    dueAt: unlessDueAgain(table, timestamp(dueAt)),
    finishedAt: finished ? at : null,
    leaseUntil: null,
  });
  return dueAt === null ? "dead" : "again";
}

/**
 * Notes that an attempt was cut short by ourselves, as though it had not been begun: it is due in so many seconds.
 * @throws LeaseLost
 */
export async function giveBackWork<C extends Claim>(
  db: Writer,
  kind: WorkKind<C>,
  claim: C,
  at: Date,
  seconds = 0,
): Promise<void> {
  const dueAt = unlessDueAgain(kind.table, timestamp(after(at, seconds)));
  await write(db, kind, claim, {
    state: kind.states.waiting,
    leaseUntil: null,
    dueAt,
    attempts: claim.attempts - 1,
  });
}

/** Why work is dead whose process died in each attempt, so that no attempt could say how it ended. */
export const interrupted: Failure = {
  reason: "It was interrupted each time: nobody can say whether it was done",
  permanent: true,
};

/** Whether its attempts were all used up, the last ones by processes that died. */
export function isInterruptedEachTime({ attempts }: Claim): boolean {
  return attempts > mostAttempts;
}

/** It cannot be done yet, and nothing is wrong: it is tried again soon. */
export class Postponed extends Error {}

/** How an attempt ends, by what its work came to; each `@throws LeaseLost`. */
interface Ends<T, E> {
  finish(value: T): Promise<E>;
  fail(failure: Failure): Promise<E>;
  giveBack(seconds: number): Promise<E>;
  /** The work failed by a fault of ours. */
  onFault(error: unknown): void;
  /** It is tried until it is done, also when processes died in each attempt. */
  endless?: boolean;
}

/**
 * Does claimed work and notes how it ended.
 *
 * @throws LeaseLost when the work is somebody else's by now, and nothing was noted; and what the database says when it
 * cannot be noted: the lease then ends by itself
 */
export async function attemptWork<T, E>(
  claim: Claim,
  signal: AbortSignal | undefined,
  work: () => Promise<T>,
  { finish, fail, giveBack, onFault, endless = false }: Ends<T, E>,
): Promise<E> {
  if (!endless && isInterruptedEachTime(claim)) return await fail(interrupted);
  let value: T;
  try {
    value = await work();
  } catch (error) {
    if (error instanceof LeaseLost) throw error;
    if (signal?.aborted) return await giveBack(0);
    if (error instanceof Postponed) return await giveBack(postponedSeconds);
    if (error instanceof SvcError)
      return await fail({ reason: error.detail, permanent: error instanceof Refused });
    onFault(error);
    return await fail({ reason: "svc itself failed: its log says more" });
  }
  return await finish(value);
}
