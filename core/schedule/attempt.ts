import { type SQL, sql } from "drizzle-orm";
import { run, scheduledTask } from "../../drizzle/schema/index.ts";
import type { Claim, ScheduleContext } from "./claim.ts";
import { behindNow } from "./database_clock.ts";
import { sendPrepared } from "./prepared.ts";
import { type Seen, type SeenRow, seeing, seenOf } from "./seen.ts";
import type { Wanted } from "./wanted.ts";

/**
 * Claims a slot in one statement if the task is as expected, and says how the task was seen to be.
 *
 * Nobody is waited for: whoever claims or pauses the task at this moment has its row locked, and then nothing is claimed.
 * That row is read once more when we lock it; of the runs the statement sees what there was when it began. What came in
 * between is refused all the same: the same slot and another run by the indexes of `run`, a later slot by its time.
 *
 * Nor is the disk waited for (`synchronous_commit`). What the run writes waits for it, and PostgreSQL keeps the order of
 * commits: a crash can lose a claim only together with all that the run has written.
 *
 * @returns undefined for a task that no worker has seen yet
 */
export async function attemptClaim(
  { db, databaseClock, owner, leaseSeconds }: ScheduleContext,
  name: string,
  { slot, until, from, result }: Wanted,
): Promise<{ seen: Seen; claim: Claim | undefined } | undefined> {
  const now = databaseClock.now();
  const at = (time: Date): SQL => sql`${time.toISOString()}::timestamptz`;
  const [row] = await sendPrepared<SeenRow & { claimed: number | null }>(
    db,
    "attempt_claim",
    sql`
      with seen as (${seeing(databaseClock, name)}),
      held as (
        select task.name, set_config('synchronous_commit', 'off', true) from ${scheduledTask} as task, seen
        where task.name = ${name} and task.paused_at is null and seen.slot is null and seen.now >= ${at(slot)}
          and greatest(task.since, seen.last) between ${at(from.first)} and ${at(from.last)}
        for no key update of task skip locked
      ),
      claimed as (
        insert into ${run} (task, slot, state, trigger, owner, lease_until, started_at, result)
        select name, ${at(slot)}, 'Running', 'schedule', ${owner}, ${behindNow(databaseClock, leaseSeconds)}, ${now},
          ${JSON.stringify(result)}::jsonb
        from held where ${now} < ${at(until)}
        on conflict do nothing
        returning attempt
      )
      select seen.*, claimed.attempt as claimed from seen left join claimed on true`,
  );
  if (!row) return undefined;
  const { claimed } = row;
  return {
    seen: seenOf(row),
    claim: claimed ? { task: name, slot, owner, attempt: claimed, trigger: "schedule" } : undefined,
  };
}
