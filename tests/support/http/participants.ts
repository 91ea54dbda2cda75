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

/** No plugins, so joining and leaving have no effects elsewhere. */
export const noPlugins = pluginsOf();

export type Visibility = (typeof incident.$inferSelect)["visibility"];

/** Inserts an incident besides that of `insertIncident`, without participants and with a channel. */
export async function insertEmptyIncident(
  db: Database,
  { incidentTypeId, incidentPriorityId }: Pick<IncidentIds, "incidentTypeId" | "incidentPriorityId">,
  at: Date,
  visibility: Visibility = "Open",
): Promise<number> {
  const [row] = await db
    .insert(incident)
    .values({
      title: "Slow",
      description: "",
      incidentTypeId,
      incidentPriorityId,
      visibility,
      reportedAt: at,
      createdAt: at,
      updatedAt: at,
    })
    .returning({ id: incident.id });
  await db.insert(conversation).values({ incidentId: row!.id, pluginSlug: "channel", createdAt: at });
  return row!.id;
}

let people = 0;

/** Inserts a person whom no other test uses. */
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

/** The ids of the participants who are commander, of whom there should be at most one. */
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

/** The participants and their roles in the tables. */
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
