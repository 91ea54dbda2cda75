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

export const runStates = ["Running", "Done", "Failed", "Missed"] as const;
export const runTriggers = ["schedule", "eager"] as const;

/** What became of the items of a run; and the slots before it that nobody ran, of which this one is the latest. */
export interface RunResult {
  done?: number;
  skipped?: number;
  failed?: number;
  missed_slots?: { count: number; from: string };
  /** How many attempts ended for a reason that passes; the last of these, and its reason. */
  retries?: { count: number; attempt: number; reason: string };
}

/** A task of the schedule, from the first time that a worker knew it. */
export const scheduledTask = pgTable("scheduled_task", {
  name: text("name").primaryKey(),
  /** Slots up to here are not run: a new task does nothing about the past, nor does one that was paused. */
  since: instant("since").notNull(),
  /** While it is paused, no slot is claimed. */
  pausedAt: instant("paused_at"),
});

/**
 * A slot of a scheduled task that somebody has claimed, by inserting this row, or that was missed. While it is Running
 * its owner renews the lease; afterwards another worker takes it over (`attempt`), and what the first one still does
 * changes nothing. All times are the database's own.
 */
export const run = pgTable(
  "run",
  {
    task: text("task").notNull(),
    slot: instant("slot").notNull(),
    state: text("state", { enum: runStates }).notNull(),
    trigger: text("trigger", { enum: runTriggers }).notNull(),
    attempt: integer("attempt").notNull().default(1),
    /** The worker; of a missed slot, who noticed. */
    owner: text("owner").notNull(),
    leaseUntil: instant("lease_until"),
    startedAt: instant("started_at"),
    finishedAt: instant("finished_at"),
    /** Why it failed, in words for people; never a secret or a message from a library. */
    error: text("error"),
    result: jsonb("result").$type<RunResult>().notNull().default({}),
  },
  (table) => [
    primaryKey({ name: "run_pk", columns: [table.task, table.slot] }),
    // No overlap, whatever the code above believes.
    uniqueIndex("run_one_running_idx")
      .on(table.task)
      .where(sql`state = 'Running'`),
    // Failures are counted again and again, among many runs that have none.
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

/** An item that a run could not do anything about; everything else of the run went on. */
export const runFault = pgTable(
  "run_fault",
  {
    task: text("task").notNull(),
    slot: instant("slot").notNull(),
    /** What it is about, for people, e.g. `document 17`. */
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

/** A worker process; it says every few seconds that it lives. */
export const worker = pgTable("worker", {
  id: text("id").primaryKey(),
  host: text("host").notNull(),
  pid: integer("pid").notNull(),
  startedAt: instant("started_at").notNull(),
  seenAt: instant("seen_at").notNull(),
});
