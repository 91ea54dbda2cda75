import { and, eq, isNull } from "drizzle-orm";
import type { Transaction } from "../../../drizzle/client.ts";
import { participantRole } from "../../../drizzle/schema/index.ts";
import { together } from "../../../drizzle/together.ts";
import { Conflict, InvalidInput } from "../../../platform/errors.ts";
import type { Actor } from "../../context.ts";
import type { AppContext } from "../../plugin/context.ts";
import { costChanged } from "../incident/lock.ts";
import { recordEvent } from "../timeline/event.ts";
import { changeParticipant } from "./change.ts";
import {
  activeParticipant,
  type Change,
  commanderOf,
  type Participant,
  type ParticipantRole,
  roleWords,
} from "./participant.ts";

export interface Assumption extends Change {
  participantId: number;
  role: ParticipantRole;
  /** Command is taken over only from this participant, whom the caller has seen in command. */
  replaces?: number;
}

/**
 * Gives a role to a participant, and returns whether they did not have it yet. There is one commander: the previous one
 * hands over in the same transaction. The caller holds `lockIncident`.
 *
 * @throws NotFound when this is no participant of the incident
 * @throws Conflict when they have left, or when `replaces` is not the commander
 */
export async function assume(tx: Transaction, wanted: Assumption): Promise<boolean> {
  const { incidentId, participantId, role, at, actor, source } = wanted;
  const [{ name }, commander] = await together([
    activeParticipant(tx, incidentId, participantId),
    role === "commander" ? commanderOf(tx, incidentId) : undefined,
  ]);
  const from = role === "commander" ? await endCommand(tx, commander, wanted) : undefined;
  const [assumed] = await tx
    .insert(participantRole)
    .values({ participantId, incidentId, role, assumedAt: at })
    .onConflictDoNothing({
      target: [participantRole.participantId, participantRole.role],
      where: isNull(participantRole.renouncedAt),
    })
    .returning({ id: participantRole.id });
  if (!assumed) return false;
  await together([
    recordEvent(tx, {
      incidentId,
      at,
      actor,
      source,
      kind: "role.assumed",
      description: from
        ? `${name} took over as ${role} from ${from.name}`
        : `${name} became ${roleWords[role]}`,
      data: { participant_id: participantId, role, ...(from ? { from_participant_id: from.id } : {}) },
    }),
    costChanged(tx, incidentId),
  ]);
  if (role === "commander") await wanted.announce?.({ roleId: assumed.id, name, from: from?.name });
  return true;
}

/** Ends the command of another participant, and returns who it was. @throws Conflict */
async function endCommand(
  tx: Transaction,
  commander: Awaited<ReturnType<typeof commanderOf>>,
  { participantId, replaces, at }: Assumption,
) {
  if (replaces !== undefined && commander?.id !== replaces)
    throw new Conflict("Somebody else is already the commander");
  if (!commander || commander.id === participantId) return undefined;
  await tx
    .update(participantRole)
    .set({ renouncedAt: at })
    .where(
      and(
        eq(participantRole.participantId, commander.id),
        eq(participantRole.role, "commander"),
        isNull(participantRole.renouncedAt),
      ),
    );
  return commander;
}

/**
 * Anyone who may read an incident may give its participants roles.
 *
 * @throws InvalidInput when `replaces` is given for a role other than commander
 * @throws NotFound also for an incident that the actor may not read
 * @throws Conflict also when they have the role
 */
export async function assumeRole(
  context: AppContext,
  actor: Actor,
  wanted: Pick<Assumption, "incidentId" | "participantId" | "role" | "replaces">,
): Promise<Participant> {
  const { incidentId, participantId } = wanted;
  if (wanted.replaces !== undefined && wanted.role !== "commander")
    throw new InvalidInput("replaces", "Only the commander role can be taken over");
  return changeParticipant(context, actor, incidentId, async (tx, change) => {
    if (!(await assume(tx, { ...wanted, ...change })))
      throw new Conflict("This participant already has the role");
    return participantId;
  });
}
