import { and, isNull, lte, or, type SQL, sql } from "drizzle-orm";
import type { PgColumn, PgTable } from "drizzle-orm/pg-core";
import type { Database, Transaction } from "../../drizzle/client.ts";
import type { workColumns } from "../../drizzle/schema/work.ts";
import { after } from "../../platform/clock.ts";
import { Refused, SvcError, Unavailable } from "../../platform/errors.ts";
import type { Context } from "../context.ts";

// Durable work: work outside the database that must be done at least once. It is a row of a table with the
// `workColumns`, written in the transaction that causes it, so a crash loses none of it.
//
// Work belongs to the process that has claimed it until `lease_until`. After that the process counts as dead and
// another one may claim the work. `lease_until` also identifies the claim: a process that no longer finds its own value
// can neither write nor finish. While work is in progress, `due_at` equals its lease, so one index finds both due work
// and what a dead process left. If it differs, the work was made due again meanwhile and is not finished when the
// attempt ends.
//
// docs/architecture.md explains why this is a table of ours and not a library.

/** How many attempts are made before work waits for a person. */
export const mostAttempts = 10;
/** How many attempts hold back the later messages of the same conversation. */
export const holdingAttempts = 3;
/** Added to the plugin's timeout, for our own work between two of its answers. */
const marginSeconds = 30;
export const postponedSeconds = 5;
/** How much of the margin may be used before the lease is extended. */
const spentSeconds = 5;

/**
 * The wait before the second attempt, which doubles up to `longestSeconds`, and the attempts until the work is dead.
 */
export interface Backoff {
  firstSeconds: number;
  longestSeconds: number;
  /** Infinity: it is never dead. */
  mostAttempts: number;
}

const usualBackoff: Backoff = { firstSeconds: 30, longestSeconds: 3600, mostAttempts };

/**
 * When work is due again after its attempt number `attempts` has failed: not before `retryAfter` seconds, within
 * `longestSeconds`. Null: when a person asks for it.
 */
export function dueAgain(at: Date, attempts: number, backoff = usualBackoff, retryAfter = 0): Date | null {
  if (attempts >= backoff.mostAttempts) return null;
  const seconds = Math.max(backoff.firstSeconds * 2 ** (attempts - 1), retryAfter);
  return after(at, Math.min(seconds, backoff.longestSeconds));
}

type WorkTable = PgTable & Record<"state" | keyof typeof workColumns, PgColumn>;

/** A kind of durable work: its table, and the names of its states there. */
export interface WorkKind<C extends Claim> {
  table: WorkTable;
  isRow(claim: C): SQL | undefined;
  states: {
    waiting: string;
    running: string;
    /** It failed, and will be retried. */
    failed: string;
    done: string;
    /**
     * It is no longer retried, and counts as finished. Without this state, it stays `failed` and waits for a person.
     */
    dead?: string;
  };
  /** By default ten attempts, the last ones an hour apart. */
  backoff?: Backoff;
  /** What is stored of the reason of a failure. By default all of it. */
  reasonOf?(claim: C, reason: string): SQL;
}

export interface Claim {
  /** Including this one. */
  attempts: number;
  leaseUntil: Date;
  /** Why the last attempt failed. */
  error: string | null;
}

/** Another process has the work now, or its subject was deleted. */
export class LeaseLost extends Error {}

type WorkContext = Pick<Context, "clock" | "config"> & { db: Database };
type Writer = Pick<Transaction, "update" | "select">;

function leaseFrom({ config }: Pick<Context, "config">, at: Date): Date {
  return after(at, config.pluginTimeout + marginSeconds);
}

const timestamp = (at: Date | null) => sql`${at?.toISOString() ?? null}::timestamptz`;

/**
 * For work that is due at once, even if the clock of the process that writes it is ahead of the database's, by which it
 * is claimed.
 */
export function dueNow(at: Date): SQL<Date> {
  return sql`least(${timestamp(at)}, now())`;
}

/** Due, and not claimed by a live process. */
export function isDue({ finishedAt, dueAt, leaseUntil }: WorkTable, at: Date): SQL | undefined {
  return and(isNull(finishedAt), lte(dueAt, at), or(isNull(leaseUntil), lte(leaseUntil, at)));
}

/** Where PostgreSQL currently stores a row: within one statement, a key that every table has. */
const place = sql`ctid`;

/** Claims the due rows among these, in this order. Rows that another process is claiming are skipped. */
export async function claimWork<C extends Claim>(
  context: WorkContext,
  { table, states }: WorkKind<C>,
  {
    among,
    order,
    limit,
    prepared,
  }: {
    among: SQL | undefined;
    order: PgColumn[];
    limit: number;
    /** Prepares the statement, which is for an `among` with few rows, however many PostgreSQL expects. */
    prepared?: string;
  },
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
  const claiming = db
    .update(table)
    .set(set as never)
    // An array is evaluated once. PostgreSQL might run a subquery several times, and each time find other free rows.
    // The rows are locked by now, so `among`, which may be expensive, is not evaluated again.
    .where(sql`${place} = any (array(${rows}))`)
    .returning();
  const claimed = await (prepared === undefined ? claiming : claiming.prepare(prepared).execute());
  return claimed as unknown as C[];
}

/** Matches the row of a claim while the claim holds. */
export function isHeld<C extends Claim>({ table, isRow }: WorkKind<C>, claim: C): SQL | undefined {
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
    .where(isHeld(kind, claim))
    .returning({ place });
  if (written.length === 0) throw new LeaseLost();
}

/** Locks the rows of claims for the rest of the transaction. @throws LeaseLost unless all of them hold */
export async function holdClaims<C extends Claim>(
  tx: Writer,
  kind: WorkKind<C>,
  claims: readonly C[],
): Promise<void> {
  const ours = or(...claims.map((claim) => isHeld(kind, claim)));
  const held = await tx.select({ place }).from(kind.table).where(ours).for("update");
  if (held.length < claims.length) throw new LeaseLost();
}

/** Not made due again since it was claimed. */
const asClaimed = ({ dueAt, leaseUntil }: WorkTable) => sql`${dueAt} = ${leaseUntil}`;
const unlessDueAgain = (table: WorkTable, otherwise: SQL) =>
  sql`case when ${asClaimed(table)} then ${otherwise} else ${table.dueAt} end`;

/**
 * Extends the lease to about its original length, before work that may take that long.
 * @throws LeaseLost if it has to check: an almost new lease is still ours
 */
export async function extendWork<C extends Claim>(
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

/**
 * Records that the work is done, or has ended in another `state`, unless it was made due again meanwhile.
 * @throws LeaseLost
 */
export async function finishWork<C extends Claim>(
  db: Writer,
  kind: WorkKind<C>,
  claim: C,
  at: Date,
  { state = kind.states.done, error = null }: { state?: string; error?: string | null } = {},
): Promise<void> {
  const { table, states } = kind;
  const over = asClaimed(table);
  await write(db, kind, claim, {
    state: sql`case when ${over} then ${state} else ${states.waiting} end`,
    attempts: sql`case when ${over} then ${table.attempts} else 0 end`,
    finishedAt: sql`case when ${over} then ${timestamp(at)} end`,
    dueAt: sql`case when not ${over} then ${table.dueAt} end`,
    error,
    leaseUntil: null,
  });
}

/** A reason for people, whether every retry would fail with it, and the seconds to wait before a retry. */
export interface Failure {
  reason: string;
  permanent?: boolean;
  retryAfter?: number;
}

/**
 * Records that an attempt has failed. Work that fails permanently, or has no attempts left, is dead: it waits for a
 * person to ask for it.
 *
 * @throws LeaseLost
 */
export async function failWork<C extends Claim>(
  db: Writer,
  kind: WorkKind<C>,
  claim: C,
  at: Date,
  { reason, permanent = false, retryAfter }: Failure,
): Promise<"again" | "dead"> {
  const { table, states, backoff, reasonOf } = kind;
  const dueAt = permanent ? null : dueAgain(at, claim.attempts, backoff, retryAfter);
  const finished = dueAt === null && states.dead !== undefined;
  await write(db, kind, claim, {
    state: finished ? states.dead : states.failed,
    error: reasonOf?.(claim, reason) ?? reason,
    dueAt: unlessDueAgain(table, timestamp(dueAt)),
    finishedAt: finished ? at : null,
    leaseUntil: null,
  });
  return dueAt === null ? "dead" : "again";
}

/**
 * Records that we cut an attempt short, as if it had not begun: it is due again in this many seconds.
 * @throws LeaseLost
 */
export async function releaseWork<C extends Claim>(
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

/** Why work is dead if its attempts are used up and the last ones ended because processes died. */
const interrupted: Failure = {
  reason: "It was interrupted each time: it is not known whether it was done",
  permanent: true,
};

/** The work cannot be done yet, but nothing is wrong: it is retried soon. */
export class Postponed extends Error {}

/** How an attempt ends, by the outcome of its work. Each one `@throws LeaseLost`. */
interface Ends<T, E> {
  finish(value: T): Promise<E>;
  fail(failure: Failure): Promise<E>;
  release(seconds: number): Promise<E>;
  /** The work failed because of a bug of ours. */
  onFault(error: unknown): void;
  /** It is retried until it is done, even if processes died in each attempt. */
  untilDone?: boolean;
}

/**
 * Does claimed work and records the outcome.
 *
 * @throws LeaseLost when the work belongs to another process now, and nothing was recorded; or the database's error
 * when the outcome cannot be recorded: the lease then expires
 */
export async function attemptWork<T, E>(
  claim: Claim,
  signal: AbortSignal | undefined,
  work: () => Promise<T>,
  { finish, fail, release, onFault, untilDone = false }: Ends<T, E>,
): Promise<E> {
  if (!untilDone && claim.attempts > mostAttempts) return await fail(interrupted);
  let value: T;
  try {
    value = await work();
  } catch (error) {
    if (error instanceof LeaseLost) throw error;
    if (signal?.aborted) return await release(0);
    if (error instanceof Postponed) return await release(postponedSeconds);
    if (error instanceof SvcError) {
      const retryAfter = error instanceof Unavailable ? error.retryAfter : undefined;
      return await fail({ reason: error.detail, permanent: error instanceof Refused, retryAfter });
    }
    onFault(error);
    return await fail({ reason: "Internal error: see svc's log" });
  }
  return await finish(value);
}
