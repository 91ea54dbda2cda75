import { and, asc, eq, gt, inArray, isNull, type SQL, sql } from "drizzle-orm";
import { event, incident, individual, participant, session, token } from "../../../drizzle/schema/index.ts";
import { toHex } from "../../../platform/secret.ts";
import type { Context, Identity } from "../../context.ts";
import { type Event, eventColumns } from "../event/list.ts";
import { mayReadIncident, type Reader } from "../visibility/visibility.ts";

// Terminology. A follower is one client of an incident's stream. Its cursor is the id of the last event sent to
// it. The tail of an incident is the id of its newest event. Every writer of an event locks its incident before it
// takes the id (timeline/event.ts), so a reader that continues with `id > cursor` never misses one.

type Db = Context["db"];

/** The most events that are read at once. */
export const eventsAtOnce = 100;

export interface Slice {
  visibility: (typeof incident.$inferSelect)["visibility"];
  /** The id of the newest event; 0 without one. */
  tail: number;
  /** By id. */
  events: Event[];
}

/**
 * Reads the first events of an incident after `cursor`, at most `limit`. For `"server"`, which shows each reader only what
 * they may read.
 *
 * @returns undefined if the incident does not exist, or the reader may not read it
 */
export async function readSlice(
  db: Db,
  reader: Reader | "server",
  incidentId: number,
  cursor: number,
  limit = eventsAtOnce,
): Promise<Slice | undefined> {
  const visible = reader === "server" ? undefined : mayReadIncident(reader);
  const rows = await db
    .select({ visibility: incident.visibility, tail, item: eventColumns })
    .from(incident)
    .leftJoin(event, and(eq(event.incidentId, incident.id), gt(event.id, cursor)))
    .where(and(eq(incident.id, incidentId), visible))
    .orderBy(asc(event.id))
    .limit(limit);
  const [first] = rows;
  if (!first) return undefined;
  const events = rows.flatMap(({ item }) => (item?.id ? [item as Event] : []));
  return { visibility: first.visibility, tail: first.tail, events };
}

/** The id of the newest event of the incident. Nested, because drizzle would otherwise drop the column's table name. */
export const tail: SQL<number> = sql<number>`${sql`coalesce((select max(e.id) from ${event} as e
  where e.incident_id = ${incident.id}), 0)`}`.mapWith(Number);

/** The state of an incident, for comparison with what was sent. */
export interface IncidentState extends Pick<Slice, "visibility" | "tail"> {
  id: number;
  name: string;
}

/** The current state of these incidents. Those that no longer exist are left out. */
export async function incidentStates(db: Db, ids: readonly number[]): Promise<IncidentState[]> {
  if (ids.length === 0) return [];
  const { id, name, visibility } = incident;
  return db
    .select({ id, name, visibility, tail })
    .from(incident)
    .where(inArray(id, [...ids]));
}

/**
 * Returns who may read these Restricted incidents besides admins, by user name: the rule of `mayReadIncident`, asked for
 * many readers at once.
 */
export async function readersOf(db: Db, ids: readonly number[]): Promise<Map<number, Set<string>>> {
  const readers = new Map(ids.map((id) => [id, new Set<string>()]));
  if (ids.length === 0) return readers;
  const rows = await db
    .select({ id: participant.incidentId, user: individual.email })
    .from(participant)
    .innerJoin(individual, eq(individual.id, participant.individualId))
    .where(and(inArray(participant.incidentId, [...ids]), isNull(participant.leftAt)));
  for (const { id, user } of rows) readers.get(id)?.add(user);
  return readers;
}

/** The users of these browser sessions who are still signed in, by key. */
export async function currentSessions(
  db: Db,
  keys: readonly string[],
  now: Date,
): Promise<Map<string, Identity>> {
  if (keys.length === 0) return new Map();
  const hashes = keys.map((key) => Buffer.from(key, "hex"));
  const rows = await db
    .select({ key: session.idHash, user: session.userName, groups: session.groups })
    .from(session)
    .where(and(inArray(session.idHash, hashes), gt(session.expiresAt, now)));
  return new Map(
    rows.flatMap(({ key, user, groups }) => (user === null ? [] : [[toHex(key), { user, groups }] as const])),
  );
}

/** Which of these access tokens have been revoked. */
export async function endedTokens(db: Db, tokenIds: readonly string[]): Promise<Set<string>> {
  if (tokenIds.length === 0) return new Set();
  const rows = await db
    .select({ id: token.jti })
    .from(token)
    .where(and(inArray(token.jti, [...tokenIds]), isNull(token.revokedAt)));
  const good = new Set(rows.map(({ id }) => id));
  return new Set(tokenIds.filter((id) => !good.has(id)));
}
