import { sql } from "drizzle-orm";
import { check, index, jsonb, pgTable, text } from "drizzle-orm/pg-core";
import { idOf, oneOf, partOf } from "./columns.ts";
import { incident } from "./incident.ts";
import { individual } from "./individual.ts";
import { instant } from "./types.ts";
import { workColumns } from "./work.ts";

/** A Split delivery has become one delivery per recipient, which have the results. */
export const deliveryStates = ["Queued", "Done", "Dead", "Split"] as const;

/**
 * A message to be sent: the outbox. It is written in the transaction of the change it reports, and stays when it is
 * done: its key is never reused.
 */
export const delivery = pgTable(
  "delivery",
  {
    /** The task, subject, recipient and plugin. The plugin gets it with each attempt. */
    key: text("key").primaryKey(),
    task: text("task").notNull(),
    /** The incident whose conversation it goes to, or on whose behalf it is sent to a person. */
    incidentId: partOf("incident_id", () => incident.id),
    /** Every incident it mentions: none may have become Restricted in the meantime. */
    about: jsonb("about").$type<number[]>().notNull(),
    /** Null: to the conversation. */
    individualId: idOf("individual_id").references(() => individual.id, { onDelete: "cascade" }),
    /** The only recipient within the conversation, by the plugin's id; null: everyone in it. */
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
    // By plugin, because each has a separate share of a worker's concurrent deliveries.
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
