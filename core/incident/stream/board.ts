import { and, eq, gt, inArray, max, or, sql } from "drizzle-orm";
import { event, individual, participant } from "../../../drizzle/schema/index.ts";
import type { Context } from "../../context.ts";
import { becameRestricted } from "../timeline/event.ts";
import { incidentStates, readersOf } from "./read.ts";

// The data of the stream of all incidents. Ids of different incidents are not committed in order, so it does not continue
// with `id > cursor`, but compares each incident's newest event with the one that was sent.

type Db = Context["db"];

/** The newest event of each incident that has one after `low`, and the newest of all of them (or `low`). */
export async function newestEvents(
  db: Db,
  low: number,
): Promise<{ top: number; tails: Map<number, number> }> {
  const rows = await db
    .select({ id: event.incidentId, tail: max(event.id) })
    .from(event)
    .where(gt(event.id, low))
    .groupBy(event.incidentId);
  const tails = new Map(rows.map(({ id, tail }) => [id, tail ?? 0]));
  return { top: Math.max(low, ...tails.values()), tails };
}

/** The id of the newest event of all incidents; 0 without one. */
export async function newestEvent(db: Db): Promise<number> {
  const [row] = await db.select({ id: max(event.id) }).from(event);
  return row?.id ?? 0;
}

/** An incident that changed, and whom it concerns. */
export interface Change {
  id: number;
  name: string;
  /** The id of its newest event. */
  tail: number;
  /** By user name, besides admins. */
  readers: "everybody" | ReadonlySet<string>;
}

/**
 * What changed in these incidents after the given event of each. It concerns the people who may read them, and those who
 * could until this change, because they do not know yet that the incident is gone.
 *
 * @returns the changes, the latest one last
 */
export async function changesAfter(db: Db, sent: ReadonlyMap<number, number>): Promise<Change[]> {
  const ids = [...sent.keys()];
  if (ids.length === 0) return [];
  const rows = await incidentStates(db, ids);
  const restricted = rows.filter(({ visibility }) => visibility !== "Open").map(({ id }) => id);
  const readers: Map<number, Change["readers"]> = await readersOf(db, restricted);
  for (const { id, eventId, user } of await readersLost(db, restricted, sent)) {
    if (eventId <= sent.get(id)!) continue;
    const before = readers.get(id)!;
    if (user === null) readers.set(id, "everybody");
    else if (before !== "everybody") readers.set(id, new Set([...before, user]));
  }
  return rows
    .map(({ id, name, tail }) => ({ id, name, tail, readers: readers.get(id) ?? ("everybody" as const) }))
    .sort((a, b) => a.tail - b.tail);
}

/** The events that made these incidents unreadable: for one person, or (null) for everybody else. */
async function readersLost(db: Db, ids: readonly number[], sent: ReadonlyMap<number, number>) {
  if (ids.length === 0) return [];
  const since = Math.min(...ids.map((id) => sent.get(id)!));
  const left = eq(event.kind, "participant.left");
  // The participation may have been deleted since. Nested, because drizzle would otherwise drop the column's table name.
  const deleted = sql`(select (e.data ->> 'individual_id')::bigint from ${event} as e
    where e.incident_id = ${sql`${event.incidentId}`} and e.kind = 'participant.deleted'
      and e.data -> 'participant_id' = ${sql`${event.data}`} -> 'participant_id')`;
  return db
    .select({ id: event.incidentId, eventId: event.id, user: individual.email })
    .from(event)
    .leftJoin(participant, and(left, sql`${participant.id} = (${event.data} ->> 'participant_id')::bigint`))
    .leftJoin(
      individual,
      and(left, sql`${individual.id} = coalesce(${participant.individualId}, ${deleted})`),
    )
    .where(
      and(
        inArray(event.incidentId, [...ids]),
        gt(event.id, since),
        or(and(left, sql`${individual.id} is not null`), becameRestricted),
      ),
    );
}
