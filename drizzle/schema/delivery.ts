import { sql } from "drizzle-orm";
import { bigint, check, index, jsonb, pgSequence, pgTable, text } from "drizzle-orm/pg-core";
import { idOf, oneOf, partOf } from "./columns.ts";
import { incident } from "./incident.ts";
import { individual } from "./individual.ts";
import { instant } from "./types.ts";
import { workColumns } from "./work.ts";

/**
 * A Split delivery has become one delivery per recipient, which have the results. An Obsolete one was dropped, because
 * what it says was no longer true, or a newer one says it.
 */
export const deliveryStates = ["Queued", "Done", "Dead", "Split", "Obsolete"] as const;

export const deliverySequence = pgSequence("delivery_sequence_seq");

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
    /**
     * What it makes a statement about, if that is about the present: it is written again when it is sent. Through a
     * plugin, a newer one about the same replaces it.
     */
    topic: text("topic"),
    /** The order of messages. Null: from a release that did not record it. Recipients have the number of the message. */
    sequence: bigint("sequence", { mode: "number" }).default(sql`nextval('delivery_sequence_seq')`),
    state: text("state", { enum: deliveryStates }).notNull().default("Queued"),
    queuedAt: instant("queued_at").notNull(),
    /** When what it reports happened, or the period of a statement about the present began; null: when it was queued. */
    occurredAt: instant("occurred_at"),
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
    // Messages of conversations that may hold back later ones.
    index("delivery_order_idx")
      .on(table.pluginSlug, table.incidentId, table.recipient, table.sequence)
      .where(sql`state = 'Queued' and individual_id is null and topic is null and attempts <= 3`),
    index("delivery_topic_idx")
      .on(table.topic, table.sequence)
      .where(sql`topic is not null`),
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
