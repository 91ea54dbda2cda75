import { and, eq, inArray, isNotNull, ne } from "drizzle-orm";
import { flowStep, participant } from "../../../drizzle/schema/index.ts";
import { Conflict, Forbidden } from "../../../platform/errors.ts";
import { audit } from "../../audit.ts";
import type { Actor } from "../../context.ts";
import type { AppContext } from "../../plugin/context.ts";
import { costChanged, lockIncident } from "../incident/lock.ts";
import { recordEvent } from "../timeline/event.ts";
import { participantOf } from "./get.ts";

/**
 * Deletes a mistaken participation as if it had never existed. Only the timeline keeps it. They must leave first, and
 * groups and conversations must have been updated: a plugin removes only those known to have left. Only admins may
 * delete.
 *
 * @throws Forbidden before anything is looked up
 * @throws NotFound
 * @throws Conflict while they participate, or while a group or conversation has yet to be updated
 */
export async function removeParticipant(
  { db, clock, plugins }: AppContext,
  actor: Actor,
  { incidentId, participantId, address }: { incidentId: number; participantId: number; address: string },
): Promise<void> {
  if (!actor.admin) throw new Forbidden("Only an admin can delete participants");
  await db.transaction(async (tx) => {
    await lockIncident(tx, actor, incidentId);
    const at = clock.now();
    const { individual } = await participantOf(tx, incidentId, participantId);
    const [removed] = await tx
      .delete(participant)
      .where(and(eq(participant.id, participantId), isNotNull(participant.leftAt)))
      .returning({ id: participant.id });
    if (!removed) throw new Conflict("This participant has not left the incident: they have to leave first");
    const steps = [
      ...plugins.ofType("participant_group").map(({ slug }) => `joined:group:${slug}`),
      ...plugins
        .ofType("conversation")
        .filter(({ methods }) => methods.remove !== undefined)
        .map(({ slug }) => `joined:conversation:${slug}`),
    ];
    const [unfinished] = await tx
      .select({ step: flowStep.step })
      .from(flowStep)
      .where(
        and(eq(flowStep.incidentId, incidentId), inArray(flowStep.step, steps), ne(flowStep.state, "Done")),
      )
      .limit(1);
    if (unfinished)
      throw new Conflict(
        "A group or conversation has yet to remove who left: try again, or retry what failed",
      );
    const subject = String(participantId);
    await audit(tx, { at, actor: actor.user, action: "participant.deleted", address, subject });
    await recordEvent(tx, {
      incidentId,
      at,
      actor: actor.user,
      kind: "participant.deleted",
      description: `${individual.name} was deleted as a participant`,
      data: { participant_id: participantId, individual_id: individual.id },
    });
    await costChanged(tx, incidentId);
  });
}
