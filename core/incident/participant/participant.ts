import { and, eq, isNull, type SQL, sql } from "drizzle-orm";
import type { SelectResultFields } from "drizzle-orm/query-builders/select.types";
import type { Transaction } from "../../../drizzle/client.ts";
import { preparedQuery } from "../../../drizzle/prepared_query.ts";
import {
  individual,
  participant,
  participantRole,
  type participantRoles,
} from "../../../drizzle/schema/index.ts";
import { Conflict, NotFound } from "../../../platform/errors.ts";
import { type Person, personColumns } from "../../catalog/person/person.ts";
import { literal } from "../../list/newest.ts";

export type ParticipantRole = (typeof participantRoles)[number];

/** The facts of each change of participants. */
export interface Change {
  incidentId: number;
  at: Date;
  /** For the timeline: a user name, `worker` or `system`. */
  actor: string;
  /** As in `TimelineEvent`. */
  source?: string;
  /** Announces a new commander in the incident's conversations. */
  announce?(command: { roleId: number; name: string; from: string | undefined }): Promise<void>;
}

type HeldRole = Pick<typeof participantRole.$inferSelect, "id" | "role" | "assumedAt" | "renouncedAt">;

/**
 * More than the roles that one person can have at once. A role may be assumed and renounced all day: the timeline has
 * every time.
 */
export const shownRoles = 20;

type RoleRow = { id: number; role: ParticipantRole; assumed_at: string; renounced_at: string | null };

const roles: SQL<HeldRole[]> = sql`(
  select coalesce(json_agg(held order by held.id), '[]') from (
    select id, role, assumed_at, renounced_at from ${participantRole}
    where ${participantRole.participantId} = ${participant.id}
    order by renounced_at is null desc, id desc limit ${literal(shownRoles)}
  ) as held)`.mapWith((held: RoleRow[]) =>
  held.map(({ id, role, assumed_at, renounced_at }) => ({
    id,
    role,
    assumedAt: new Date(assumed_at),
    renouncedAt: renounced_at === null ? null : new Date(renounced_at),
  })),
);

/** From `participant` joined with its `individual`. */
export const participantColumns = {
  id: participant.id,
  individual: personColumns,
  joinedAt: participant.joinedAt,
  leftAt: participant.leftAt,
  /** At most `shownRoles`: the current ones, then the latest former ones, in the order in which they were assumed. */
  roles,
};

export type Participant = SelectResultFields<typeof participantColumns>;

/** A role in a sentence about somebody who has it. */
export const roleWords: Readonly<Record<ParticipantRole, string>> = {
  commander: "commander",
  scribe: "scribe",
  liaison: "liaison",
  reporter: "reporter",
  participant: "a participant",
  observer: "an observer",
};

export function noSuchParticipant(): NotFound {
  return new NotFound("There is no such participant");
}

/** For the commander: an incident that has one keeps one. */
export function handOverFirst(): Conflict {
  return new Conflict("Hand over command first");
}

/** A current participant. `id` is the participant's. */
type Active = Person;

const active = { ...personColumns, id: participant.id };

const participantQuery = preparedQuery((tx) =>
  tx
    .select({ ...active, leftAt: participant.leftAt })
    .from(participant)
    .innerJoin(individual, eq(individual.id, participant.individualId))
    .where(
      and(
        eq(participant.id, sql.placeholder("id")),
        eq(participant.incidentId, sql.placeholder("incidentId")),
      ),
    )
    .prepare("participant"),
);

/** @throws NotFound when this is no participant of the incident @throws Conflict when they have left */
export async function activeParticipant(tx: Transaction, incidentId: number, id: number): Promise<Active> {
  const [found] = await participantQuery(tx).execute({ id, incidentId });
  if (!found) throw noSuchParticipant();
  if (found.leftAt !== null) throw new Conflict("This participant has left");
  return found;
}

/** The commander of the incident, if any. */
export async function commanderOf(tx: Transaction, incidentId: number): Promise<Active | undefined> {
  const [commander] = await commanderQuery(tx).execute({ incidentId });
  return commander;
}

const commanderQuery = preparedQuery((tx) =>
  tx
    .select(active)
    .from(participantRole)
    .innerJoin(participant, eq(participant.id, participantRole.participantId))
    .innerJoin(individual, eq(individual.id, participant.individualId))
    .where(
      and(
        eq(participantRole.incidentId, sql.placeholder("incidentId")),
        eq(participantRole.role, "commander"),
        isNull(participantRole.renouncedAt),
      ),
    )
    .prepare("commander"),
);
