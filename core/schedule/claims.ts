// There are two ways to claim: one statement that expects the usual case (`attemptClaim`), and a transaction that locks
// the task first and handles every case (`claimLocked`). The second alone would be correct. The first is kept because
// all workers claim at the same moment, and it needs one round trip for all tasks that are due, instead of five for
// each. With eight at a time on a test database (four rounds of 3 s, alternating), one statement for each task took 0.42
// to 0.53 of the time and 0.50 to 0.63 of the client's CPU time.

import { and, eq, lte, type SQL, sql } from "drizzle-orm";
import { PgDialect } from "drizzle-orm/pg-core";
import type { Database, Transaction } from "../../drizzle/client.ts";
import { run, type runTriggers, scheduledTask } from "../../drizzle/schema/index.ts";
import { after } from "../../platform/clock.ts";
import { Conflict } from "../../platform/errors.ts";
import { type DatabaseClock, fromNow } from "../database_clock.ts";
import {
  covers,
  decide,
  type Running,
  resultOf,
  type Seen,
  soonAfter,
  usuallyWanted,
  type Wanted,
  wantedOf,
} from "./decide.ts";
import { catchUpSeconds, nextSlot } from "./slots.ts";
import type { TaskDefinition } from "./tasks.ts";

/** What the schedule's operations need. */
export interface ScheduleContext {
  db: Database;
  databaseClock: DatabaseClock;
  config: { timezone: string };
  /** The worker's id in the table `worker`. */
  owner: string;
  /** How long a claim is valid without being renewed. */
  leaseSeconds: number;
}

/** A run that is ours as long as we renew its lease. */
export interface Claim {
  task: string;
  slot: Date;
  owner: string;
  attempt: number;
  trigger: (typeof runTriggers)[number];
  /** How many of its attempts ended for a transient reason. */
  retries?: number;
}

/** A claim, with the database's time, or when to check again. */
export type Claimed = { claim: Claim; now: Date } | { lookAgain: Date };

/** The second attempt knows what the first one saw. */
const attempts = 2;

/**
 * Claims the task's slot that is due by the database's time, or claims the run of a dead worker. Slots that were
 * not run are recorded with it: those of a short task in the result of the run that covers them, those of a daily task
 * as Missed. It never waits for another process that holds the task's lock.
 *
 * `at` is the caller's idea of the database's time. If it is right, one statement usually suffices. If it is wrong,
 * still nothing is claimed that is not due.
 */
export async function claimDue(context: ScheduleContext, task: TaskDefinition, at?: Date): Promise<Claimed> {
  const { timezone } = context.config;
  let wanted = at && usuallyWanted(task, timezone, at);
  for (let left = attempts; wanted && left > 0; left -= 1) {
    const tried = await attemptClaim(context, task.name, wanted);
    if (!tried) break;
    const { seen, claim } = tried;
    if (claim) return { claim, now: seen.now };
    const decision = decide(task, timezone, seen);
    if (decision.what === "wait") return { lookAgain: decision.lookAgain };
    const due = wantedOf(task, timezone, decision);
    // It was due, so another worker is claiming it.
    if (due && covers(wanted, due))
      return { lookAgain: soonAfter(seen.now, nextSlot(task.timing, timezone, seen.now)) };
    wanted = due;
  }
  return claimLocked(context, task);
}

/**
 * Claims a run for a task that somebody runs by hand, whether it is paused or not. If a dead worker has left a run,
 * that run is claimed instead.
 *
 * @throws Conflict when the task is running
 */
export async function claimNow(context: ScheduleContext, task: TaskDefinition): Promise<Claim> {
  return context.db.transaction(async (tx) => {
    await lockTask(tx, context, task.name, "wait");
    const { now, running } = await seeLocked(tx, context, task.name);
    const expired = running && running.leaseUntil <= now;
    const taken = expired ? await claimExpired(tx, context, task, running, now) : undefined;
    if (taken) return taken;
    // A run that has just been given up is recorded as failed and does not block the new one.
    const inTheWay = expired ? (await seeLocked(tx, context, task.name)).running : running;
    const claim = inTheWay
      ? undefined
      : await insertRun(tx, context, { task: task.name, slot: now, trigger: "eager" });
    if (!claim) throw new Conflict(`${task.name} is already running: svc scheduler status`);
    return claim;
  });
}

/** What an attempt saw and claimed. Undefined for a task that no worker has seen yet. */
type Attempted = { seen: Seen; claim: Claim | undefined } | undefined;

/** Attempts at different tasks that are sent in one statement. */
interface Batch {
  context: ScheduleContext;
  /** By task. */
  attempts: Map<string, Attempt>;
}

interface Attempt {
  wanted: Wanted;
  answer: PromiseWithResolvers<Attempted>;
}

/** Those that are not sent yet. */
const batches = new WeakMap<Database, Set<Batch>>();

/**
 * Claims a slot in one statement if the task is in the expected state, and returns the state that it saw.
 *
 * It never waits: while another process claims or pauses the task, the row is locked and nothing is claimed. The task's
 * row is read again when it is locked, but the statement sees only the runs that existed when it began. A concurrent
 * claim is refused all the same: the same slot and another run by the indexes of `run`, a later slot by its time.
 *
 * Nor does it wait for the disk (`synchronous_commit`). The run's own writes do, and PostgreSQL keeps the order of
 * commits: a crash can lose a claim only together with everything that the run has written.
 *
 * Tasks that are due at the same moment share a statement: all attempts of one turn of the event loop.
 *
 * @returns undefined for a task that no worker has seen yet
 */
export function attemptClaim(context: ScheduleContext, name: string, wanted: Wanted): Promise<Attempted> {
  const { db, databaseClock, owner, leaseSeconds } = context;
  const waiting = batches.get(db) ?? new Set();
  batches.set(db, waiting);
  const isOurs = (batch: Batch) =>
    batch.context.owner === owner &&
    batch.context.databaseClock === databaseClock &&
    batch.context.leaseSeconds === leaseSeconds &&
    !batch.attempts.has(name);
  let ours = waiting.values().find(isOurs);
  if (!ours) {
    const batch: Batch = { context, attempts: new Map() };
    ours = batch;
    waiting.add(batch);
    setImmediate(() => {
      waiting.delete(batch);
      void sendBatch(batch);
    });
  }
  const answer = Promise.withResolvers<Attempted>();
  ours.attempts.set(name, { wanted, answer });
  return answer.promise;
}

async function sendBatch({ context, attempts }: Batch): Promise<void> {
  try {
    const rows = await attemptClaims(context, attempts);
    for (const [name, { answer }] of attempts) answer.resolve(rows.get(name));
  } catch (error) {
    for (const one of attempts) {
      if (attempts.size === 1) one[1].answer.reject(error);
      // Another one may be at fault.
      else void sendBatch({ context, attempts: new Map([one]) });
    }
  }
}

async function attemptClaims(
  { db, databaseClock, owner, leaseSeconds }: ScheduleContext,
  attempts: Batch["attempts"],
): Promise<Map<string, Attempted>> {
  const now = databaseClock.now();
  const wanted = [...attempts].map(([name, one]) => {
    const { slot, until, from, result } = one.wanted;
    return { name, slot, until, ...from, result };
  });
  const rows = await sendPrepared<SeenRow & { name: string; claimed: number | null }>(
    db,
    "attempt_claims",
    sql`
      with wanted as (
        select * from jsonb_to_recordset(${JSON.stringify(wanted)}::jsonb) as wanted(
          name text, slot timestamptz, until timestamptz, first timestamptz, last timestamptz, result jsonb)
      ),
      seen as (${seeing(databaseClock, sql`in (select name from wanted)`)}),
      held as (
        select task.name, set_config('synchronous_commit', 'off', true)
        from ${scheduledTask} as task join seen on seen.name = task.name join wanted on wanted.name = task.name
        where task.paused_at is null and seen.slot is null and seen.now >= wanted.slot
          and greatest(task.since, seen.last) between wanted.first and wanted.last
        for no key update of task skip locked
      ),
      claimed as (
        insert into ${run} (task, slot, state, trigger, owner, lease_until, started_at, result)
        select wanted.name, wanted.slot, 'Running', 'schedule', ${owner}, ${fromNow(databaseClock, leaseSeconds)},
          ${now}, wanted.result
        from held join wanted on wanted.name = held.name where ${now} < wanted.until
        on conflict do nothing
        returning task, attempt
      )
      select seen.*, claimed.attempt as claimed from seen left join claimed on claimed.task = seen.name`,
  );
  return new Map(
    rows.map((row) => {
      const { name, claimed } = row;
      const { slot } = attempts.get(name)!.wanted;
      const claim = claimed
        ? ({ task: name, slot, owner, attempt: claimed, trigger: "schedule" } as const)
        : undefined;
      return [name, { seen: seenOf(row), claim }];
    }),
  );
}

/** A row of `seeing`, as PostgreSQL writes it. */
interface SeenRow {
  now: string;
  since: string;
  paused_at: string | null;
  last: string | null;
  slot: string | null;
  lease_until: string | null;
  attempt: number | null;
  trigger: Running["trigger"] | null;
}

/**
 * The SELECT of a row for `seenOf` of each of these tasks that a worker has seen. The states are literals: with
 * parameters, a prepared statement could not use the partial index of Running runs.
 */
function seeing(clock: DatabaseClock, names: SQL): SQL {
  return sql`
    select known.name, ${clock.now()} as now, known.since, known.paused_at, running.slot, running.lease_until, running.attempt,
      running.trigger, (
        select slot from ${run} where task = known.name and trigger = 'schedule' order by slot desc limit 1
      ) as last
    from ${scheduledTask} as known
    left join ${run} as running on running.task = known.name and running.state = 'Running'
    where known.name ${names}`;
}

function seenOf({ now, since, paused_at, last, slot, lease_until, attempt, trigger }: SeenRow): Seen {
  const running =
    slot && lease_until && attempt && trigger
      ? { slot: new Date(slot), leaseUntil: new Date(lease_until), attempt, trigger }
      : null;
  const time = (text: string | null) => (text === null ? null : new Date(text));
  return { now: new Date(now), since: new Date(since), pausedAt: time(paused_at), last: time(last), running };
}

const dialect = new PgDialect();

/**
 * Sends a statement that each connection prepares once. It is for statements that all workers send at the same moment,
 * written as text: assembling one from parts takes as long as PostgreSQL needs to run it. Rows are returned as
 * PostgreSQL writes them, so times are strings.
 */
export function sendPrepared<Row>(db: Database | Transaction, name: string, statement: SQL): Promise<Row[]> {
  const { session } = db._;
  const query = dialect.sqlToQuery(statement);
  return session
    .prepareQuery<{ execute: Row[]; all: Row[]; values: never }>(query, undefined, name, false)
    .execute();
}

const missedAtOnce = 1000;

/** Claims what is due in any case, while nobody else can claim or pause the task. */
async function claimLocked(context: ScheduleContext, task: TaskDefinition): Promise<Claimed> {
  const { config } = context;
  return context.db.transaction(async (tx) => {
    const held = await lockTask(tx, context, task.name, "skip");
    const seen = await seeLocked(tx, context, task.name);
    const { now } = seen;
    const next = nextSlot(task.timing, config.timezone, now);
    const soon = { lookAgain: soonAfter(now, next) };
    if (!held) return soon;
    const decision = decide(task, config.timezone, seen);
    if (decision.what === "wait") return { lookAgain: decision.lookAgain };
    if (decision.what === "claim expired") {
      const claim = await claimExpired(tx, context, task, decision.running, now);
      return claim ? { claim, now } : soon;
    }
    const { slot, missed } = decision;
    await recordMissed(tx, context, task, missed);
    if (!slot) return { lookAgain: next };
    const values = { task: task.name, slot, trigger: "schedule", result: resultOf(decision) } as const;
    const claim = await insertRun(tx, context, values);
    return claim ? { claim, now } : soon;
  });
}

/**
 * Locks the task until the end of the transaction: nobody else claims or pauses it meanwhile. If this process freezes,
 * PostgreSQL ends the transaction after the duration of a lease.
 *
 * @returns false if somebody else holds the lock and `lockMode` is "skip"
 */
export async function lockTask(
  tx: Transaction,
  { databaseClock, leaseSeconds }: ScheduleContext,
  name: string,
  lockMode: "wait" | "skip",
): Promise<boolean> {
  const ours = scheduledTask.name;
  const idle = sql`set_config('idle_in_transaction_session_timeout', ${`${leaseSeconds}s`}, true)`;
  const lock = async () => {
    const select = tx.select({ idle }).from(scheduledTask).where(eq(ours, name));
    const held = await (lockMode === "wait"
      ? select.for("update")
      : select.for("update", { skipLocked: true }));
    return held.length > 0;
  };
  const known = async () => (await tx.$count(scheduledTask, eq(ours, name))) > 0;
  if (await lock()) return true;
  if (await known()) return false;
  await tx.insert(scheduledTask).values({ name, since: databaseClock.now() }).onConflictDoNothing();
  return lock();
}

/** Reads the state of a locked task. A separate statement, because it then sees what was committed before the lock. */
async function seeLocked(tx: Transaction, { databaseClock }: ScheduleContext, name: string): Promise<Seen> {
  const [row] = await sendPrepared<SeenRow>(tx, "see_task", seeing(databaseClock, sql`= ${name}`));
  return seenOf(row!);
}

/** Claims a run that does not exist yet. @returns undefined if another worker was first */
async function insertRun(
  tx: Transaction,
  { databaseClock, owner, leaseSeconds }: ScheduleContext,
  values: Pick<Claim, "task" | "slot" | "trigger"> & Pick<typeof run.$inferInsert, "result">,
): Promise<Claim | undefined> {
  const { task, slot, trigger } = values;
  const leaseUntil = fromNow(databaseClock, leaseSeconds);
  const [claimed] = await tx
    .insert(run)
    .values({ ...values, state: "Running", owner, leaseUntil, startedAt: databaseClock.now() })
    .onConflictDoNothing()
    .returning({ attempt: run.attempt });
  return claimed && { task, slot, trigger, owner, attempt: claimed.attempt };
}

async function recordMissed(
  tx: Transaction,
  { databaseClock, owner }: ScheduleContext,
  task: TaskDefinition,
  missed: readonly Date[],
): Promise<void> {
  const finishedAt: SQL<Date> = databaseClock.now();
  const common = { task: task.name, state: "Missed", trigger: "schedule", owner, finishedAt } as const;
  // A statement has a limited number of parameters, and a wrong clock may leave decades of slots to record.
  for (let from = 0; from < missed.length; from += missedAtOnce) {
    const slots = missed.slice(from, from + missedAtOnce);
    await tx
      .insert(run)
      .values(slots.map((slot) => ({ ...common, slot })))
      .onConflictDoNothing();
  }
}

/** A run that kills its worker each time is finally given up. */
const mostDeaths = 5;

/**
 * Claims the run of a dead worker. It does not wait for an open transaction of that run (`skip locked`): the
 * transaction holds the row with a key share lock, which conflicts only with a takeover.
 *
 * @returns undefined if the run is locked, or if it is given up and has been recorded as failed
 */
export async function claimExpired(
  tx: Transaction,
  { databaseClock, owner, leaseSeconds }: ScheduleContext,
  task: TaskDefinition,
  { slot, attempt, trigger }: Running,
  now: Date,
): Promise<Claim | undefined> {
  const isIt = and(eq(run.task, task.name), eq(run.slot, slot), eq(run.attempt, attempt));
  const [ours] = await tx
    .select({ result: run.result })
    .from(run)
    .where(and(isIt, eq(run.state, "Running"), lte(run.leaseUntil, databaseClock.now())))
    .for("update", { skipLocked: true });
  if (!ours) return undefined;
  const { retries } = ours.result;
  const tooLate = "daily" in task.timing && after(slot, catchUpSeconds) < now;
  if (tooLate || attempt - (retries?.count ?? 0) >= mostDeaths) {
    const error = !tooLate
      ? `Its worker died ${mostDeaths} times`
      : retries
        ? `It was tried ${attempt} times within six hours; the last reason for a retry: ${retries.reason}`
        : "Its worker died, and no other worker was available within six hours";
    const finishedAt = databaseClock.now();
    await tx.update(run).set({ state: "Failed", error, leaseUntil: null, finishedAt }).where(isIt);
    return undefined;
  }
  const leaseUntil = fromNow(databaseClock, leaseSeconds);
  await tx
    .update(run)
    .set({ owner, attempt: attempt + 1, leaseUntil, startedAt: databaseClock.now() })
    .where(isIt);
  return { task: task.name, slot, owner, attempt: attempt + 1, trigger, retries: retries?.count ?? 0 };
}
