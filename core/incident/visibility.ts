import { or, type Placeholder, type SQL, sql } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";
import { incident, individual, participant } from "../../drizzle/schema/index.ts";
import type { Actor, Context } from "../context.ts";
import { kept } from "../kept.ts";

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
  const [members, admins] = [false, true].map((admin) => kept((db) => make(db, anyReader(admin))));
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
