import type { Transaction } from "../../drizzle/client.ts";
import type { Actor, Context } from "../context.ts";
import { lockIncident } from "../incident/lock.ts";
import { participantOf } from "./get.ts";
import type { Change, Participant } from "./participant.ts";

/**
 * Runs `work` while nobody else changes the incident, and shows the participant whose id it returns as they are then:
 * also to somebody who has just taken themselves out of a Restricted one.
 *
 * @throws NotFound when the actor may not read the incident
 */
export async function changeParticipant(
  { db, clock }: Context,
  actor: Actor,
  incidentId: number,
  work: (
    tx: Transaction,
    change: Change,
    incident: Awaited<ReturnType<typeof lockIncident>>,
  ) => Promise<number>,
): Promise<Participant> {
  const change = { incidentId, at: clock.now(), actor: actor.user };
  return db.transaction(async (tx) => {
    const locked = await lockIncident(tx, actor, incidentId);
    return participantOf(tx, incidentId, await work(tx, change, locked));
  });
}
