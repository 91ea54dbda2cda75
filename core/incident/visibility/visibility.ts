import { or, type Placeholder, type SQL, sql } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";
import { preparedQuery } from "../../../drizzle/prepared_query.ts";
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

// Who reads what. Everything that shows anything of an incident has one of these conditions in its own WHERE: a list, a
// search, a count, an UPDATE. Nothing is read first and judged afterwards, so what is hidden takes the same query, the
// same time and the same words as what does not exist.

export type Reader = Pick<Actor, "user" | "admin">;

/** Whoever reads by a query that is kept: `execute` is told who, as `reader`. */
export interface AnyReader extends Pick<Actor, "admin"> {
  user: Placeholder<"reader">;
}

export const anyReader = (admin: boolean): AnyReader => ({ admin, user: sql.placeholder("reader") });

/** `kept`, once for members and once for admins. */
export function keptForReaders<Query>(
  make: (db: Context["db"], reader: AnyReader) => Query,
): (db: Context["db"], reader: Reader) => Query {
  const [members, admins] = [false, true].map((admin) => preparedQuery((db) => make(db, anyReader(admin))));
  return (db, { admin }) => (admin ? admins! : members!)(db);
}

/**
 * The incidents that `reader` may read: admins all; members the Open ones, and the Restricted ones in which they are a
 * participant now. Who left reads on no more: leaving is the only way to take a mistaken invitation back, and who comes
 * back is a participant again.
 *
 * A participant is an individual; the user of the same canonical name is that individual.
 */
export function mayReadIncident(reader: Reader | AnyReader): SQL {
  return reader.admin ? sql`true` : isShownTo(sql`${individual.email} = ${reader.user}`);
}

/** The incidents of which this individual may be told, who is a member for us: whether they are an admin, only a token says. */
export function mayBeToldOf(individualId: number): SQL {
  return isShownTo(sql`${individual.id} = ${individualId}`);
}

function isShownTo(member: SQL): SQL {
  // An array, so that PostgreSQL makes it once and not for each row.
  const theirs = sql`array(
    select ${participant.incidentId} from ${participant}
    join ${individual} on ${individual.id} = ${participant.individualId}
    where ${member} and ${participant.leftAt} is null)`;
  return or(sql`${incident.visibility} = 'Open'`, sql`${incident.id} = any(${theirs})`)!;
}

/**
 * The records that `reader` may read, of a table that names its incident in `incidentId`: those of incidents that they
 * may read, and those of none.
 */
export function mayReadOf(reader: Reader | AnyReader, incidentId: PgColumn): SQL {
  if (reader.admin) return sql`true`;
  // `not exists (... not ...)` is an anti-join, which walks an index in the order of the list. With `exists` behind an
  // `or`, PostgreSQL reads all incidents first. That the incident exists is the foreign key's promise.
  return sql`not exists (
    select from ${incident} where ${incident.id} = ${incidentId} and not (${mayReadIncident(reader)}))`;
}

/**
 * The individuals whom `reader` may know of: themselves, those who are in the catalog or on call somewhere, and those who
 * have a part in an incident that the reader may read. Who is known only through Restricted incidents is shown to the
 * participants of those and to admins.
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
    // What is said to one person alone makes its author known to nobody else.
    sql`select ${conversation.incidentId} from ${conversationMessage}
      join ${conversation} on ${conversation.id} = ${conversationMessage.conversationId}
      where ${conversationMessage.authorId} = ${id} and ${conversationMessage.recipientId} is null`,
    sql`select ${recommendation.incidentId} from ${recommendation} where ${recommendation.individualId} = ${id}`,
  ];
  // A scalar sub-select: of `exists`, PostgreSQL may decide to read the whole tables first.
  return sql`(${listed} or ${email} = ${reader.user} or coalesce(
    (select true from ${rotationMember} where ${rotationMember.individualId} = ${id} limit 1),
    (select true from (${sql.join(parts, sql` union all `)}) as part
      join ${incident} on ${incident.id} = part.incident_id where ${mayReadIncident(reader)} limit 1),
    false))`;
}
