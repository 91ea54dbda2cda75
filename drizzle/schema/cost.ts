import { sql } from "drizzle-orm";
import { bigint, check, index, integer, numeric, pgTable, primaryKey, text } from "drizzle-orm/pg-core";
import { id, namedReference, oneOf, partOf } from "./columns.ts";
import { incident } from "./incident.ts";
import { participantRoles } from "./participant.ts";
import { instant } from "./types.ts";

/**
 * The parameters of the cost calculation (docs/schedule.md, "Costs"). The highest version is in force. A change adds a version,
 * so that older costs can still be explained.
 */
export const costFormula = pgTable(
  "cost_formula",
  {
    version: integer("version").primaryKey(),
    /** What a person costs per year, in whole units of any currency. */
    yearlyCost: integer("yearly_cost").notNull(),
    /** Working hours per person and year. */
    yearlyHours: integer("yearly_hours").notNull(),
    /** Working hours per person and day: someone who is involved for days also sleeps. */
    dailyHours: numeric("daily_hours", { mode: "number" }).notNull(),
    /** Review hours: for preparation, and per participant. */
    reviewHours: numeric("review_hours", { mode: "number" }).notNull(),
    reviewHoursPerParticipant: numeric("review_hours_per_participant", { mode: "number" }).notNull(),
    createdAt: instant("created_at").notNull(),
  },
  () => [
    check("cost_formula_version", sql`version > 0`),
    check("cost_formula_rate", sql`yearly_cost >= 0 and yearly_hours > 0`),
    check("cost_formula_hours", sql`daily_hours between 0 and 24`),
    check("cost_formula_review", sql`review_hours >= 0 and review_hours_per_participant >= 0`),
  ],
);

/** The weight of an hour in this role. A role without a row has weight zero. */
export const costFormulaRole = pgTable(
  "cost_formula_role",
  {
    formulaVersion: integer("formula_version")
      .notNull()
      .references(() => costFormula.version, { onDelete: "cascade" }),
    role: text("role", { enum: participantRoles }).notNull(),
    multiplier: numeric("multiplier", { mode: "number" }).notNull(),
  },
  (table) => [
    primaryKey({ name: "cost_formula_role_pk", columns: [table.formulaVersion, table.role] }),
    check("cost_formula_role_known", oneOf("role", participantRoles)),
    check("cost_formula_role_multiplier", sql`multiplier >= 0`),
  ],
);

/** A calculated cost of an incident, written only when it changes. `incident.cost` is the newest. */
export const incidentCost = pgTable(
  "incident_cost",
  {
    id: id(),
    incidentId: partOf("incident_id", () => incident.id),
    computedAt: instant("computed_at").notNull(),
    cost: bigint("cost", { mode: "number" }).notNull(),
    formulaVersion: integer("formula_version").notNull(),
    /** The inputs: weighted seconds of work, review hours, cost per hour. */
    seconds: bigint("seconds", { mode: "number" }).notNull(),
    reviewHours: numeric("review_hours", { mode: "number" }).notNull(),
    rate: integer("rate").notNull(),
  },
  (table) => [
    namedReference("incident_cost_formula_fk", table.formulaVersion, costFormula.version),
    index("incident_cost_incident_idx").on(table.incidentId, table.computedAt, table.id),
    index("incident_cost_formula_idx").on(table.formulaVersion),
    check("incident_cost_not_negative", sql`cost >= 0 and seconds >= 0 and review_hours >= 0`),
  ],
);
