import { type SQL, sql } from "drizzle-orm";
import type { Database, Transaction } from "../../drizzle/client.ts";
import { run, type runTriggers, scheduledTask } from "../../drizzle/schema/index.ts";
import type { DatabaseClock } from "./database_clock.ts";
import { sendPrepared } from "./prepared.ts";

/** A run that somebody has claimed and that has not ended; its worker may be dead. */
export interface Running {
  slot: Date;
  leaseUntil: Date;
  attempt: number;
  trigger: (typeof runTriggers)[number];
}

/** All that decides what is to be done about a task, as it was at `now`. */
export interface Seen {
  now: Date;
  since: Date;
  pausedAt: Date | null;
  /** The latest slot that was claimed or missed. */
  last: Date | null;
  running: Running | null;
}

/** What `seeing` selects, as PostgreSQL writes it. */
export interface SeenRow {
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
 * The SELECT of a row for `seenOf`; none for a task that no worker has seen yet. The states are no parameters: of those a
 * prepared statement does not know that the index of what is Running has them.
 */
export function seeing(clock: DatabaseClock, name: string): SQL {
  return sql`
    select ${clock.now()} as now, known.since, known.paused_at, running.slot, running.lease_until, running.attempt,
      running.trigger, (
        select slot from ${run} where task = ${name} and trigger = 'schedule' order by slot desc limit 1
      ) as last
    from ${scheduledTask} as known
    left join ${run} as running on running.task = known.name and running.state = 'Running'
    where known.name = ${name}`;
}

export function seenOf({ now, since, paused_at, last, slot, lease_until, attempt, trigger }: SeenRow): Seen {
  const running =
    slot && lease_until && attempt && trigger
      ? { slot: new Date(slot), leaseUntil: new Date(lease_until), attempt, trigger }
      : null;
  const time = (text: string | null) => (text === null ? null : new Date(text));
  return { now: new Date(now), since: new Date(since), pausedAt: time(paused_at), last: time(last), running };
}

/** @returns undefined for a task that no worker has seen yet */
export async function see(
  db: Database | Transaction,
  clock: DatabaseClock,
  name: string,
): Promise<Seen | undefined> {
  const [row] = await sendPrepared<SeenRow>(db, "see_task", seeing(clock, name));
  return row && seenOf(row);
}
