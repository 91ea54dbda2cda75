import { or, type Placeholder, type SQL, sql } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";
import { preparedQuery } from "../../../drizzle/prepared_query.ts";
import { isUnmarked } from "../../../drizzle/schema/columns.ts";
import {
  conversation,
  conversationMessage,
  incident,
  individual,
  participant,
  recommendation,
  rotationMember,
  statusReport,
  task,
  taskAssignee,
} from "../../../drizzle/schema/index.ts";
import type { Actor, Context } from "../../context.ts";

// Who may read what. Everything that shows part of an incident has one of these conditions in its WHERE: a list, a
// search, a count, an UPDATE. Nothing is read first and checked afterwards, so hidden records take the same query, the
// same time and the same answer as nonexistent ones.

export type Reader = Pick<Actor, "user" | "admin">;

/** The reader of a prepared query, who is passed to `execute` as `reader`. */
export interface AnyReader extends Pick<Actor, "admin"> {
  user: Placeholder<"reader">;
}

/** An incident, or that of a prepared query, which is passed to `execute` as `incidentId`. */
export type IncidentRef = number | Placeholder<"incidentId">;

export const anyReader = (admin: boolean): AnyReader => ({ admin, user: sql.placeholder("reader") });

/** Like `preparedQuery`, once for members and once for admins. */
export function preparedForReaders<Query>(
  make: (db: Context["db"], reader: AnyReader) => Query,
): (db: Context["db"], reader: Reader) => Query {
  const [members, admins] = [false, true].map((admin) => preparedQuery((db) => make(db, anyReader(admin))));
  return (db, { admin }) => (admin ? admins! : members!)(db);
}

/**
 * Matches the incidents that `reader` may read. Admins may read all. Members may read the Open ones, and the Restricted
 * ones in which they currently participate. People who have left may no longer read: leaving is the only way to undo a
 * mistaken invitation, and those who come back are participants again.
 *
 * A participant is an individual, and the user with the same canonical name is that individual.
 */
export function mayReadIncident(reader: Reader | AnyReader): SQL {
  return reader.admin ? sql`true` : isShownTo(sql`${individual.email} = ${reader.user}`);
}

/** Matches the incidents that this individual may read as a member: only a token says whether they are an admin. */
export function mayBeToldOf(individualId: number): SQL {
  return isShownTo(sql`${individual.id} = ${individualId}`);
}

/**
 * The two kinds of incidents that a member may read, for a search: the Open ones, whose words have an index of their own,
 * and the few that are theirs. So the matches that are hidden from them are not even counted. Undefined for an admin.
 */
export function readableKinds(reader: Reader | AnyReader): { open: SQL; theirs: SQL } | undefined {
  return reader.admin ? undefined : kindsShownTo(sql`${individual.email} = ${reader.user}`);
}

/**
 * The same for records of incidents: those whose words are not marked as those of a Restricted one, and those of the
 * Restricted ones in which a member participates. `isOf` matches the records of an array of incidents.
 */
export function readableKindsOf(
  reader: Reader | AnyReader,
  { search, incidentId }: { search: PgColumn; incidentId?: PgColumn },
  isOf = (incidents: SQL) => sql`${incidentId} = any(${incidents})`,
): { open: SQL; theirs: SQL } | undefined {
  if (reader.admin) return undefined;
  const restricted = sql`array(
    select ${participant.incidentId} from ${participant}
    join ${individual} on ${individual.id} = ${participant.individualId}
    join ${incident} on ${incident.id} = ${participant.incidentId}
    where ${individual.email} = ${reader.user} and ${participant.leftAt} is null and ${incident.visibility} <> 'Open')`;
  return { open: isUnmarked(search), theirs: isOf(restricted) };
}

function isShownTo(member: SQL): SQL {
  const { open, theirs } = kindsShownTo(member);
  return or(open, theirs)!;
}

function kindsShownTo(member: SQL): { open: SQL; theirs: SQL } {
  // An array, so that PostgreSQL evaluates it once and not for each row.
  const ids = sql`array(
    select ${participant.incidentId} from ${participant}
    join ${individual} on ${individual.id} = ${participant.individualId}
    where ${member} and ${participant.leftAt} is null)`;
  return { open: sql`${incident.visibility} = 'Open'`, theirs: sql`${incident.id} = any(${ids})` };
}

/**
 * Matches the records that `reader` may read in a table whose column `incidentId` names the incident: those of readable
 * incidents, and those without an incident.
 */
export function mayReadOf(reader: Reader | AnyReader, incidentId: PgColumn): SQL {
  if (reader.admin) return sql`true`;
  // `not exists (... not ...)` is an anti-join, which walks an index in the order of the list. With `exists` after an
  // `or`, PostgreSQL reads all incidents first. The foreign key guarantees that the incident exists.
  return sql`not exists (
    select from ${incident} where ${incident.id} = ${incidentId} and not (${mayReadIncident(reader)}))`;
}

/**
 * Matches the individuals whom `reader` may know of: themselves, those in the catalog or on call somewhere, and those
 * involved in an incident that the reader may read. People known only through Restricted incidents are visible to those
 * incidents' participants and to admins.
 */
export function mayKnow(reader: Reader | AnyReader): SQL {
  if (reader.admin) return sql`true`;
  const { id, email, listed } = individual;
  const parts = [
    sql`select ${participant.incidentId} as incident_id from ${participant} where ${participant.individualId} = ${id}`,
    ...[task.ownerId, task.creatorId].map(
      (person) =>
        sql`select ${task.incidentId} from ${task} where ${person} = ${id} and ${task.deletedAt} is null`,
    ),
    sql`select ${task.incidentId} from ${taskAssignee} join ${task} on ${task.id} = ${taskAssignee.taskId}
      where ${taskAssignee.individualId} = ${id} and ${task.deletedAt} is null`,
    sql`select ${statusReport.incidentId} from ${statusReport} where ${statusReport.authorId} = ${id}`,
    // A direct message does not make its author known to others.
    sql`select ${conversation.incidentId} from ${conversationMessage}
      join ${conversation} on ${conversation.id} = ${conversationMessage.conversationId}
      where ${conversationMessage.authorId} = ${id} and ${conversationMessage.recipientId} is null`,
    sql`select ${recommendation.incidentId} from ${recommendation} where ${recommendation.individualId} = ${id}`,
  ];
  // A scalar sub-select: with `exists`, PostgreSQL may decide to read the whole tables first.
  return sql`(${listed} or ${email} = ${reader.user} or coalesce(
    (select true from ${rotationMember} where ${rotationMember.individualId} = ${id} limit 1),
    (select true from (${sql.join(parts, sql` union all `)}) as part
      join ${incident} on ${incident.id} = part.incident_id where ${mayReadIncident(reader)} limit 1),
    false))`;
}
