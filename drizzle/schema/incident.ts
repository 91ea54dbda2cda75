import { sql } from "drizzle-orm";
import { bigint, check, index, integer, pgSequence, pgTable, text, uniqueIndex } from "drizzle-orm/pg-core";
import { editable, id, oneOf, referenceTo, withinYears, wordIndex } from "./columns.ts";
import { incidentPriority, incidentType, visibilities } from "./incident_type.ts";
import { instant, searchVector } from "./types.ts";

export const incidentStatuses = ["Active", "Stable", "Closed"] as const;

/** The numbers in INC-1, INC-2, ... A report that fails leaves a gap. */
export const incidentNameSequence = pgSequence("incident_name_seq", { startWith: 1 });

/**
 * An incident. Active → Stable → Closed; reopening returns to Active and clears `stable_at` and `closed_at`, which the
 * timeline (`event`) preserves. Each transition is one conditional UPDATE on `version`.
 */
export const incident = pgTable(
  "incident",
  {
    id: id(),
    name: text("name")
      .notNull()
      .default(sql`'INC-' || nextval('incident_name_seq')`),
    title: text("title").notNull(),
    description: text("description").notNull(),
    status: text("status", { enum: incidentStatuses }).notNull().default("Active"),
    visibility: text("visibility", { enum: visibilities }).notNull().default("Open"),
    incidentTypeId: referenceTo("incident_type_id", () => incidentType.id),
    incidentPriorityId: referenceTo("incident_priority_id", () => incidentPriority.id),
    resolution: text("resolution"),
    reportedAt: instant("reported_at").notNull(),
    stableAt: instant("stable_at"),
    closedAt: instant("closed_at"),
    /** When the harm began and ended. The other times record when somebody said so. */
    impactStartedAt: instant("impact_started_at"),
    impactEndedAt: instant("impact_ended_at"),
    /** The newest of `incident_cost`. Updating it does not change `version` and `updated_at`. */
    cost: bigint("cost", { mode: "number" }).notNull().default(0),
    /**
     * Incremented by every change that affects the cost: state, roles, participants. The worker records in
     * `costed_basis` which value it has read, so a change committed during the calculation is handled next time.
     */
    costBasis: integer("cost_basis").notNull().default(1),
    costedBasis: integer("costed_basis").notNull().default(0),
    ...editable(),
    search: searchVector("search"),
  },
  (table) => [
    uniqueIndex("incident_name_idx").on(table.name),
    // Lists are sorted by (reported_at, id), with one of the filters first.
    index("incident_reported_idx").on(table.reportedAt, table.id),
    index("incident_status_idx").on(table.status, table.reportedAt, table.id),
    index("incident_visibility_idx").on(table.visibility, table.reportedAt, table.id),
    index("incident_type_idx").on(table.incidentTypeId, table.reportedAt, table.id),
    index("incident_priority_idx").on(table.incidentPriorityId, table.reportedAt, table.id),
    // For the daily summary: Stable or Closed within 24 h.
    index("incident_stable_at_idx")
      .on(table.stableAt)
      .where(sql`stable_at is not null`),
    index("incident_closed_at_idx")
      .on(table.closedAt)
      .where(sql`closed_at is not null`),
    index("incident_cost_due_idx")
      .on(table.id)
      .where(sql`status = 'Active' or costed_basis <> cost_basis`),
    wordIndex("incident_search_block_idx", table),
    // For members: a word of Restricted incidents takes no longer than an unknown one.
    wordIndex("incident_search_open_idx", table).where(sql`visibility = 'Open'`),
    check("incident_status_known", oneOf("status", incidentStatuses)),
    check("incident_visibility_known", oneOf("visibility", visibilities)),
    check("incident_times", withinYears("reported_at", "stable_at", "closed_at")),
    check("incident_stable_at_of_status", sql`(status = 'Active') = (stable_at is null)`),
    check("incident_closed_at_of_status", sql`(status = 'Closed') = (closed_at is not null)`),
  ],
);
