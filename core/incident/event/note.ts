import { parseProse } from "../../../platform/text.ts";
import type { Actor } from "../../context.ts";
import type { PluginContext } from "../../plugin/context.ts";
import { lockIncident } from "../incident/lock.ts";
import { announceNote } from "../message/announce.ts";
import { recordEvent } from "../timeline/event.ts";
import type { Event } from "./list.ts";

/**
 * Adds somebody's note to an incident's timeline. Anyone who may read the incident may add one.
 *
 * @throws InvalidInput
 * @throws NotFound when the actor may not read the incident
 */
export async function noteOnTimeline(
  context: PluginContext,
  actor: Actor,
  wanted: { incidentId: number; description: string },
): Promise<Event> {
  const { db, clock } = context;
  const { incidentId } = wanted;
  const description = parseProse("description", wanted.description);
  const at = clock.now();
  return db.transaction(async (tx) => {
    const incident = await lockIncident(tx, actor, incidentId);
    const note = { incidentId, at, actor: actor.user, kind: "note" as const, description, data: {} };
    const id = await recordEvent(tx, note);
    await announceNote(tx, context, incident, { id, user: actor.user, text: description });
    return { ...note, id, source: "core" };
  });
}
