import { and, eq, isNull } from "drizzle-orm";
import type { Transaction } from "../../../drizzle/client.ts";
import { individual, participant } from "../../../drizzle/schema/index.ts";
import { together } from "../../../drizzle/together.ts";
import { costChanged } from "../incident/lock.ts";
import { recordEvent } from "../timeline/event.ts";
import { assume } from "./assume.ts";
import type { Change, ParticipantRole } from "./participant.ts";

export interface Joining extends Change {
  individualId: number;
  roles: readonly ParticipantRole[];
}

export interface Joined {
  participantId: number;
  /** They did not participate before. */
  joined: boolean;
  /** The roles that they did not have. */
  assumed: ParticipantRole[];
}

/**
 * Makes an individual participate with these roles. An existing participant gets the missing ones. The individual must
 * exist, and the caller holds `lockIncident`.
 */
export async function join(tx: Transaction, wanted: Joining): Promise<Joined> {
  const { incidentId, individualId, roles, at, actor, source, announce } = wanted;
  const [there] = await tx
    .select({ id: participant.id })
    .from(participant)
    .where(
      and(
        eq(participant.incidentId, incidentId),
        eq(participant.individualId, individualId),
        isNull(participant.leftAt),
      ),
    );
  const participantId = there?.id ?? (await enter(tx, wanted));
  const assumed: ParticipantRole[] = [];
  for (const role of new Set(roles)) {
    const change = { incidentId, participantId, role, at, actor, source, announce };
    if (await assume(tx, change)) assumed.push(role);
  }
  return { participantId, joined: there === undefined, assumed };
}

async function enter(tx: Transaction, { incidentId, individualId, at, actor, source }: Joining) {
  const [[entered], [person]] = await together([
    tx
      .insert(participant)
      .values({ incidentId, individualId, joinedAt: at })
      .returning({ id: participant.id }),
    tx.select({ name: individual.name }).from(individual).where(eq(individual.id, individualId)),
  ]);
  const { id } = entered!;
  await together([
    recordEvent(tx, {
      incidentId,
      at,
      actor,
      source,
      kind: "participant.joined",
      description: `${person!.name} joined`,
      data: { participant_id: id, individual_id: individualId },
    }),
    costChanged(tx, incidentId),
  ]);
  return id;
}
