import type { Transaction } from "../../../drizzle/client.ts";
import type { Actor } from "../../context.ts";
import type { AppContext } from "../../plugin/context.ts";
import { lockIncident } from "../incident/lock.ts";
import { announceCommand } from "../message/announce.ts";
import { participantOf } from "./get.ts";
import type { Change, Participant } from "./participant.ts";

/**
 * Runs `work` with the incident locked, and returns the participant whose id it returns, even to somebody who has just
 * left a Restricted incident.
 *
 * @throws NotFound when the actor may not read the incident
 */
export async function changeParticipant(
  context: AppContext,
  actor: Actor,
  incidentId: number,
  work: (
    tx: Transaction,
    change: Change,
    incident: Awaited<ReturnType<typeof lockIncident>>,
  ) => Promise<number>,
): Promise<Participant> {
  const { db, clock } = context;
  return db.transaction(async (tx) => {
    const locked = await lockIncident(tx, actor, incidentId);
    const announce: Change["announce"] = (command) => announceCommand(tx, context, locked, command);
    const change = { incidentId, at: clock.now(), actor: actor.user, announce };
    return participantOf(tx, incidentId, await work(tx, change, locked));
  });
}
