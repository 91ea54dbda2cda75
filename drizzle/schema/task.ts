import { sql } from "drizzle-orm";
import { boolean, check, index, pgTable, primaryKey, text, uniqueIndex } from "drizzle-orm/pg-core";
import {
  editable,
  id,
  idOf,
  isUnmarked,
  oneOf,
  partOf,
  referenceTo,
  withinYears,
  wordIndex,
} from "./columns.ts";
import { document } from "./document.ts";
import { incident } from "./incident.ts";
import { individual } from "./individual.ts";
import { instant, searchVector } from "./types.ts";

export const taskStatuses = ["Open", "Resolved", "Cancelled"] as const;

/**
 * Something to do in an incident. Either created here, or found by incident-task-sync in the document `document_id`,
 * whose plugin identifies it by `external_id`.
 */
export const task = pgTable(
  "task",
  {
    id: id(),
    incidentId: referenceTo("incident_id", () => incident.id),
    description: text("description").notNull(),
    status: text("status", { enum: taskStatuses }).notNull().default("Open"),
    /** Null if the document names no one, or no one that we know. */
    creatorId: idOf("creator_id").references(() => individual.id, { onDelete: "restrict" }),
    ownerId: idOf("owner_id").references(() => individual.id, { onDelete: "restrict" }),
    resolveBy: instant("resolve_by").notNull(),
    resolvedAt: instant("resolved_at"),
    documentId: idOf("document_id").references(() => document.id, { onDelete: "restrict" }),
    externalId: text("external_id"),
    /** A tombstone: it is gone from its document. If it reappears there, it is this task again. */
    deletedAt: instant("deleted_at"),
    /** Whether incident-task-reminders includes it. */
    reminders: boolean("reminders").notNull().default(true),
    /** Written in the transaction that enqueues the reminder. Does not change `version`. */
    lastReminderAt: instant("last_reminder_at"),
    ...editable(),
    search: searchVector("search"),
  },
  (table) => [
    uniqueIndex("task_external_id_idx").on(table.documentId, table.externalId),
    // Lists are sorted by (resolve_by, id), with one of the filters first.
    index("task_resolve_by_idx").on(table.resolveBy, table.id),
    index("task_incident_idx").on(table.incidentId, table.resolveBy, table.id),
    index("task_status_idx").on(table.status, table.resolveBy, table.id),
    index("task_owner_idx").on(table.ownerId, table.resolveBy, table.id),
    index("task_creator_idx").on(table.creatorId, table.resolveBy, table.id),
    index("task_reminder_due_idx")
      .on(table.resolveBy, table.id)
      .where(sql`status = 'Open' and reminders and deleted_at is null`),
    wordIndex("task_search_block_idx", table),
    wordIndex("task_search_open_idx", table).where(isUnmarked(table.search)),
    check("task_status_known", oneOf("status", taskStatuses)),
    check("task_times", withinYears("resolve_by", "last_reminder_at")),
    check("task_resolved_at_of_status", sql`(status = 'Resolved') = (resolved_at is not null)`),
    check("task_external_id_of_a_document", sql`external_id is null or document_id is not null`),
    check("task_deleted_upstream", sql`deleted_at is null or external_id is not null`),
  ],
);

export const taskAssignee = pgTable(
  "task_assignee",
  {
    taskId: partOf("task_id", () => task.id),
    individualId: referenceTo("individual_id", () => individual.id),
  },
  (table) => [
    primaryKey({ name: "task_assignee_pk", columns: [table.taskId, table.individualId] }),
    index("task_assignee_individual_idx").on(table.individualId, table.taskId),
  ],
);
