import { sql } from "drizzle-orm";
import { check, index, jsonb, pgTable, text } from "drizzle-orm/pg-core";
import { idOf, oneOf } from "./columns.ts";
import { incident } from "./incident.ts";
import { individual } from "./individual.ts";
import { instant } from "./types.ts";
import { workColumns } from "./work.ts";

/** What was Split has become a delivery for each recipient: those say what came of it. */
export const deliveryStates = ["Queued", "Done", "Dead", "Split"] as const;

/**
 * A message that leaves the database: the outbox. It is written in the transaction of what it tells of, and it stays when it
 * is done: its key is never used again.
 */
export const delivery = pgTable(
  "delivery",
  {
    /** Task, what and whom, and by which plugin. The plugin gets it with each attempt. */
    key: text("key").primaryKey(),
    task: text("task").notNull(),
    /** Whose conversation it goes to, or in whose name to a person. */
    incidentId: idOf("incident_id")
      .notNull()
      .references(() => incident.id, { onDelete: "cascade" }),
    /** Every incident that it tells of: none may have become Restricted meanwhile. */
    about: jsonb("about").$type<number[]>().notNull(),
    /** Null: to the conversation. */
    individualId: idOf("individual_id").references(() => individual.id, { onDelete: "cascade" }),
    /** Who alone of the conversation it goes to, as its plugin calls them; null: everyone in it. */
    recipient: text("recipient"),
    pluginSlug: text("plugin_slug").notNull(),
    subject: text("subject").notNull(),
    /** Markdown. */
    text: text("text").notNull(),
    state: text("state", { enum: deliveryStates }).notNull().default("Queued"),
    queuedAt: instant("queued_at").notNull(),
    ...workColumns,
  },
  (table) => [
    index("delivery_state_idx").on(table.state, table.queuedAt, table.key),
    index("delivery_incident_idx").on(table.incidentId),
    index("delivery_individual_idx").on(table.individualId),
    // By plugin, since each has its own share of what a worker sends at once.
    index("delivery_due_idx")
      .on(table.pluginSlug, table.dueAt)
      .where(sql`state = 'Queued'`),
    check("delivery_state_known", oneOf("state", deliveryStates)),
    check("delivery_lease_of_state", sql`state = 'Queued' or lease_until is null`),
    check("delivery_due_of_state", sql`(state = 'Queued') = (due_at is not null)`),
    check("delivery_finished_of_state", sql`(state = 'Queued') = (finished_at is null)`),
    check("delivery_to_one", sql`recipient is null or individual_id is null`),
    check(
      "delivery_split_to_everyone",
      sql`state <> 'Split' or (recipient is null and individual_id is null)`,
    ),
    check("delivery_dead_says_why", sql`state <> 'Dead' or error is not null`),
  ],
);
