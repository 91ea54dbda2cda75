import { and, eq, isNull } from "drizzle-orm";
import { lockIncident } from "../../../core/incident/incident/lock.ts";
import { join } from "../../../core/incident/participant/join.ts";
import type { ParticipantRole } from "../../../core/incident/participant/participant.ts";
import type { Database } from "../../../drizzle/client.ts";
import {
  conversation,
  event,
  incident,
  individual,
  participant,
  participantRole,
} from "../../../drizzle/schema/index.ts";
import { pluginsOf } from "../../../plugins/fake/plugins.ts";
import type { IncidentIds } from "../domain/incident.ts";

/** No plugin is chosen: nothing follows from who joins and leaves. */
export const noPlugins = pluginsOf();

export type Visibility = (typeof incident.$inferSelect)["visibility"];

/** A further incident beside that of `insertIncident`, with nobody in it and a channel of its own. */
export async function insertEmptyIncident(
  db: Database,
  { incidentTypeId, incidentPriorityId }: Pick<IncidentIds, "incidentTypeId" | "incidentPriorityId">,
  at: Date,
  visibility: Visibility = "Open",
): Promise<number> {
  const [row] = await db
    .insert(incident)
    .values({
      ...{ title: "Slow", description: "", incidentTypeId, incidentPriorityId, visibility },
      ...{ reportedAt: at, createdAt: at, updatedAt: at },
    })
    .returning({ id: incident.id });
  await db.insert(conversation).values({ incidentId: row!.id, pluginSlug: "channel", createdAt: at });
  return row!.id;
}

let people = 0;

/** A person that no other test uses. */
export async function insertIndividual(db: Database, at: Date, name = `person${++people}`) {
  const [row] = await db
    .insert(individual)
    .values({ name, email: `${name}@example.com`, createdAt: at, updatedAt: at })
    .returning({ id: individual.id });
  return row!.id;
}

/** Adds an individual as a participant, without permission checks. */
export async function letJoin(
  db: Database,
  incidentId: number,
  individualId: number,
  at: Date,
  roles: readonly ParticipantRole[] = [],
): Promise<number> {
  return db.transaction(async (tx) => {
    await lockIncident(tx, "worker", incidentId);
    const { participantId } = await join(tx, { incidentId, individualId, roles, at, actor: "worker" });
    return participantId;
  });
}

/** The ids of the participants who command: at most one, or something is wrong. */
export async function commandersOf(db: Database, incidentId: number): Promise<number[]> {
  const rows = await db
    .select({ id: participantRole.participantId })
    .from(participantRole)
    .where(
      and(
        eq(participantRole.incidentId, incidentId),
        eq(participantRole.role, "commander"),
        isNull(participantRole.renouncedAt),
      ),
    );
  return rows.map(({ id }) => id);
}

/** Participants and their roles, as they stand in the tables. */
export async function rowsOf(db: Database, incidentId: number) {
  return {
    participants: await db
      .select()
      .from(participant)
      .where(eq(participant.incidentId, incidentId))
      .orderBy(participant.id),
    roles: await db
      .select()
      .from(participantRole)
      .where(eq(participantRole.incidentId, incidentId))
      .orderBy(participantRole.id),
  };
}

export const timelineOf = (db: Database, incidentId: number) =>
  db.select().from(event).where(eq(event.incidentId, incidentId)).orderBy(event.id);

export async function costBasisOf(db: Database, incidentId: number): Promise<number> {
  const [row] = await db
    .select({ costBasis: incident.costBasis })
    .from(incident)
    .where(eq(incident.id, incidentId));
  return row!.costBasis;
}
