import { sql } from "drizzle-orm";
import { check, index, integer, pgTable, primaryKey, text } from "drizzle-orm/pg-core";
import { idOf, oneOf } from "./columns.ts";
import { incident } from "./incident.ts";
import { instant } from "./types.ts";

export const flowStepStates = ["Pending", "Running", "Done", "Failed"] as const;

/**
 * A thing that follows from a change of an incident and may fail without it: participants, documents, conversation,
 * group. The rows are written with the change, so what a crash interrupts is still known to be missing. Each step may
 * run again: it finds what it has made before.
 */
export const flowStep = pgTable(
  "flow_step",
  {
    incidentId: idOf("incident_id")
      .notNull()
      .references(() => incident.id, { onDelete: "cascade" }),
    /** What it follows from and what it does, e.g. `reported:documents`; with the plugin where there are several. */
    step: text("step").notNull(),
    state: text("state", { enum: flowStepStates }).notNull().default("Pending"),
    attempts: integer("attempts").notNull().default(0),
    /** While Running: afterwards somebody else may take it over. */
    leaseUntil: instant("lease_until"),
    /** When it may be tried (again); null: when a person asks for it. */
    dueAt: instant("due_at"),
    finishedAt: instant("finished_at"),
    /** Why it failed, in words for people; never a secret or a message from a library. */
    error: text("error"),
  },
  (table) => [
    primaryKey({ name: "flow_step_pk", columns: [table.incidentId, table.step] }),
    index("flow_step_due_idx")
      .on(table.dueAt)
      .where(sql`state <> 'Done'`),
    check("flow_step_state_known", oneOf("state", flowStepStates)),
    check("flow_step_lease_of_state", sql`(state = 'Running') = (lease_until is not null)`),
    check("flow_step_finished_of_state", sql`(state = 'Done') = (finished_at is not null)`),
    check("flow_step_failed_says_why", sql`state <> 'Failed' or error is not null`),
  ],
);
