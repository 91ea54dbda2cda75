import { and, eq, type SQL } from "drizzle-orm";
import { individual, participant } from "../../../drizzle/schema/index.ts";
import type { Actor, Context } from "../../context.ts";
import { mayReadOf } from "../visibility/visibility.ts";
import { noSuchParticipant, type Participant, participantColumns } from "./participant.ts";

/** @throws NotFound also for an incident that the actor may not read */
export async function getParticipant(
  { db }: Context,
  actor: Actor,
  { incidentId, participantId }: { incidentId: number; participantId: number },
): Promise<Participant> {
  return participantOf(db, incidentId, participantId, mayReadOf(actor, participant.incidentId));
}

/** `where` is the reader's permission. Without it, the permission was checked before. @throws NotFound */
export async function participantOf(
  db: Context["db"],
  incidentId: number,
  id: number,
  where?: SQL,
): Promise<Participant> {
  const [found] = await db
    .select(participantColumns)
    .from(participant)
    .innerJoin(individual, eq(individual.id, participant.individualId))
    .where(and(eq(participant.id, id), eq(participant.incidentId, incidentId), where));
  if (!found) throw noSuchParticipant();
  return found;
}
