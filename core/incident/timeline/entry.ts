import { type SQL, sql } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";
import { event, textIdOf } from "../../../drizzle/schema/index.ts";

// Vocabulary. An entry is an event that has a person's text: a note, a status report, or a message to everyone. Its
// author may correct or withdraw it, and an admin may also redact it. What happened to it is recorded in its event,
// whatever table holds its text.

export const entryKinds = ["note", "report.written", "message.sent"] as const;
export type EntryKind = (typeof entryKinds)[number];

/** What people call each kind. */
export const entryNames: Record<EntryKind, string> = {
  note: "note",
  "report.written": "status report",
  "message.sent": "message",
};

/** The text of a withdrawn entry. Its words are then only in `event_revision`. */
export const withdrawnText = "Withdrawn";
/** Stands for a redacted text. */
export const redactedText = "Redacted";

/** The fields of a report or a message that its event has. */
export interface EntryState {
  /** Null for a message to one person, which has no event and cannot be corrected. */
  eventId: number | null;
  version: number;
  editedAt: Date | null;
  editedBy: string | null;
  withdrawnAt: Date | null;
  redactedAt: Date | null;
}

/** Without an event, or with one that was just written. */
export const newEntry: EntryState = {
  eventId: null,
  version: 1,
  editedAt: null,
  editedBy: null,
  withdrawnAt: null,
  redactedAt: null,
};

interface EntryJson extends Pick<EntryState, "version" | "editedBy"> {
  eventId: number;
  editedAt: string | null;
  withdrawnAt: string | null;
  redactedAt: string | null;
}

/**
 * The state of the report or the message with this id, as a column of a list. A scalar subquery, which reads an index
 * for each row: of a join, PostgreSQL may read all events first.
 */
export function entryStateOf(kind: EntryKind, id: PgColumn): SQL<EntryState | null> {
  // Nested, because drizzle would otherwise drop the columns' table names.
  return sql`${sql`(select json_build_object('eventId', ${event.id}, 'version', ${event.version},
      'editedAt', ${event.editedAt}, 'editedBy', ${event.editedBy}, 'withdrawnAt', ${event.withdrawnAt},
      'redactedAt', ${event.redactedAt})
    from ${event} where ${event.kind} = ${sql.raw(`'${kind}'`)} and ${textIdOf(event.data)} = ${id}::text limit 1)`}`.mapWith(
    {
      mapFromDriverValue: ({ editedAt, withdrawnAt, redactedAt, ...json }: EntryJson): EntryState => ({
        ...json,
        editedAt: dateOf(editedAt),
        withdrawnAt: dateOf(withdrawnAt),
        redactedAt: dateOf(redactedAt),
      }),
    },
  );
}

/** Adds the state to the fields of a report or a message. */
export function withState<T>({
  entry,
  ...row
}: T & { entry: EntryState | null }): Omit<T, "entry"> & EntryState {
  return { ...row, ...(entry ?? newEntry) };
}

const dateOf = (text: string | null) => (text === null ? null : new Date(text));
