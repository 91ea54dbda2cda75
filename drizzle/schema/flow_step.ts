import { sql } from "drizzle-orm";
import { check, index, pgTable, primaryKey, text } from "drizzle-orm/pg-core";
import { oneOf, partOf } from "./columns.ts";
import { incident } from "./incident.ts";
import { workColumns } from "./work.ts";

export const flowStepStates = ["Pending", "Running", "Done", "Failed"] as const;

/**
 * A consequence of a change to an incident that may fail independently: participants, documents, conversation, group.
 * The rows are written with the change, so that steps interrupted by a crash are known. Each step may run again: it
 * finds what it created before.
 */
export const flowStep = pgTable(
  "flow_step",
  {
    incidentId: partOf("incident_id", () => incident.id),
    /** Its cause and its action, e.g. `reported:documents`, with the plugin if there are several. */
    step: text("step").notNull(),
    state: text("state", { enum: flowStepStates }).notNull().default("Pending"),
    ...workColumns,
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
