import { eq } from "drizzle-orm";
import type { Transaction } from "../../../drizzle/client.ts";
import { incident } from "../../../drizzle/schema/index.ts";
import { InvalidInput } from "../../../platform/errors.ts";
import { parseProse } from "../../../platform/text.ts";
import type { Actor } from "../../context.ts";
import type { AppContext } from "../../plugin/context.ts";
import { lockIncident } from "../incident/lock.ts";
import { announceNote } from "../message/announce.ts";
import { newEntry } from "../timeline/entry.ts";
import { recordEvent } from "../timeline/event.ts";
import type { Event } from "./list.ts";

/** How long before the report of its incident a note may be dated: causes are older than what they break. */
export const earliestDays = 30;

/**
 * Adds somebody's note to an incident's timeline. Anyone who may read the incident may add one.
 *
 * @param wanted.at when it happened, if not now: not in the future, nor more than `earliestDays` before the report
 * @throws InvalidInput
 * @throws NotFound when the actor may not read the incident
 */
export async function noteOnTimeline(
  context: AppContext,
  actor: Actor,
  wanted: { incidentId: number; description: string; at?: Date },
): Promise<Event> {
  const { db, clock } = context;
  const { incidentId } = wanted;
  const description = parseProse("description", wanted.description);
  if (wanted.at && wanted.at > clock.now())
    throw new InvalidInput("at", "The time of a note must not be in the future");
  return db.transaction(async (tx) => {
    const locked = await lockIncident(tx, actor, incidentId);
    const now = clock.now();
    const { at = now } = wanted;
    if (at < now) await refuseLongBefore(tx, incidentId, at);
    // A backdated note also says when it was added.
    const data: Record<string, unknown> = at < now ? { noted_at: now.toISOString() } : {};
    const note = { incidentId, at, actor: actor.user, kind: "note" as const, description, data };
    const id = await recordEvent(tx, note);
    await announceNote(tx, context, locked, { id, user: actor.user, text: description, at });
    const { eventId: _, ...state } = newEntry;
    return { ...note, id, source: "core", ...state };
  });
}

/** @throws InvalidInput */
async function refuseLongBefore(tx: Transaction, id: number, at: Date): Promise<void> {
  const [found] = await tx
    .select({ reportedAt: incident.reportedAt })
    .from(incident)
    .where(eq(incident.id, id));
  const earliest = new Date(found!.reportedAt.getTime() - earliestDays * 86_400_000);
  if (at < earliest)
    throw new InvalidInput(
      "at",
      `The time of a note must not be more than ${earliestDays} days before the report of the incident`,
    );
}
