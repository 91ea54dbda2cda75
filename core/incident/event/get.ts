import { and, eq } from "drizzle-orm";
import { event } from "../../../drizzle/schema/index.ts";
import { NotFound } from "../../../platform/errors.ts";
import type { Actor, Context } from "../../context.ts";
import { maySee, seeIncident } from "../visibility/see.ts";
import { type Event, eventColumns } from "./list.ts";

/** Names an event of an incident. */
export interface EventIds {
  incidentId: number;
  eventId: number;
}

/** @throws NotFound also for an event of another incident */
export async function getEvent(
  context: Pick<Context, "db">,
  actor: Actor,
  { incidentId, eventId }: EventIds,
): Promise<Event> {
  await seeIncident(context, actor, incidentId);
  const [found] = await context.db
    .select(eventColumns)
    .from(event)
    .where(and(eq(event.id, eventId), eq(event.incidentId, incidentId), maySee(actor, incidentId)));
  if (!found) throw noSuchEntry(eventId);
  return found;
}

export function noSuchEntry(eventId: number): NotFound {
  return new NotFound(`The incident has no entry e${eventId}`);
}
