import { sql } from "drizzle-orm";
import {
  check,
  foreignKey,
  index,
  integer,
  jsonb,
  pgTable,
  primaryKey,
  text,
  uniqueIndex,
} from "drizzle-orm/pg-core";
import { oneOf } from "./columns.ts";
import { instant } from "./types.ts";

const runStates = ["Running", "Done", "Failed", "Missed"] as const;
export const runTriggers = ["schedule", "eager"] as const;

/** The results of a run's items, and the missed slots of which this one is the latest. */
export interface RunResult {
  done?: number;
  skipped?: number;
  failed?: number;
  /** Plugins that failed for all of their items, and for how many. */
  failing_plugins?: Record<string, number>;
  missed_slots?: { count: number; from: string };
  /** The number of attempts that failed temporarily; the last of these, and its reason. */
  retries?: { count: number; attempt: number; reason: string };
}

/** A task of the schedule, since a worker first knew it. */
export const scheduledTask = pgTable("scheduled_task", {
  name: text("name").primaryKey(),
  /** Slots up to here are not run: neither a new task nor one that was paused catches up on the past. */
  since: instant("since").notNull(),
  /** While it is paused, no slot is claimed. */
  pausedAt: instant("paused_at"),
});

/**
 * A slot of a scheduled task that a worker claimed by inserting this row, or that was missed. While it is Running, its
 * owner extends the lease; after the lease ends, another worker claims it (`attempt`), and the first one can no longer
 * change anything. All times are the database's.
 */
export const run = pgTable(
  "run",
  {
    task: text("task").notNull(),
    slot: instant("slot").notNull(),
    state: text("state", { enum: runStates }).notNull(),
    trigger: text("trigger", { enum: runTriggers }).notNull(),
    attempt: integer("attempt").notNull().default(1),
    /** The worker; for a missed slot, the one that noticed. */
    owner: text("owner").notNull(),
    leaseUntil: instant("lease_until"),
    startedAt: instant("started_at"),
    finishedAt: instant("finished_at"),
    /** Why it failed, for people; never a secret or a message from a library. */
    error: text("error"),
    result: jsonb("result").$type<RunResult>().notNull().default({}),
  },
  (table) => [
    primaryKey({ name: "run_pk", columns: [table.task, table.slot] }),
    // Prevents overlapping runs independently of the code.
    uniqueIndex("run_one_running_idx")
      .on(table.task)
      .where(sql`state = 'Running'`),
    // Failures are counted often, among many successful runs.
    index("run_failed_idx")
      .on(table.task, table.finishedAt)
      .where(sql`state in ('Failed', 'Missed')`),
    check("run_state_known", oneOf("state", runStates)),
    check("run_trigger_known", oneOf("trigger", runTriggers)),
    check("run_attempt", sql`attempt > 0`),
    check("run_lease_of_state", sql`(state = 'Running') = (lease_until is not null)`),
    check("run_finished_of_state", sql`(state = 'Running') = (finished_at is null)`),
    check("run_started_of_state", sql`(state = 'Missed') = (started_at is null)`),
    check("run_failed_says_why", sql`(state = 'Failed') = (error is not null)`),
  ],
);

/** An item that a run could not process; the rest of the run continued. */
export const runFault = pgTable(
  "run_fault",
  {
    task: text("task").notNull(),
    slot: instant("slot").notNull(),
    /** The item, for people, e.g. `document 17`. */
    item: text("item").notNull(),
    /** For people; never a secret or a message from a library. */
    reason: text("reason").notNull(),
  },
  (table) => [
    primaryKey({ name: "run_fault_pk", columns: [table.task, table.slot, table.item] }),
    foreignKey({
      name: "run_fault_run_fk",
      columns: [table.task, table.slot],
      foreignColumns: [run.task, run.slot],
    }).onDelete("cascade"),
  ],
);

/** A worker process, with a heartbeat every few seconds. */
export const worker = pgTable("worker", {
  id: text("id").primaryKey(),
  host: text("host").notNull(),
  pid: integer("pid").notNull(),
  startedAt: instant("started_at").notNull(),
  seenAt: instant("seen_at").notNull(),
});
