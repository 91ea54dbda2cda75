import { and, eq, type SQL, sql } from "drizzle-orm";
import {
  conversation,
  document,
  flowStep,
  incident,
  incidentPriority,
  incidentType,
  individual,
  participantGroup,
  recommendation,
  team,
} from "../../../drizzle/schema/index.ts";
import type { RecommendationReason } from "../../../drizzle/schema/recommendation.ts";
import type { Person } from "../../catalog/person/person.ts";
import type { Actor, Context } from "../../context.ts";
import { noSuchIncident } from "../visibility/see.ts";
import { type AnyReader, mayReadIncident, mayReadOf, preparedForReaders } from "../visibility/visibility.ts";
import { reporterOf } from "./holder.ts";
import { type Incident, incidentColumns } from "./incident.ts";

/** A step that follows from the incident: `core/incident/flow`. */
export interface Step extends Pick<typeof flowStep.$inferSelect, "step" | "state" | "attempts" | "error"> {
  dueAt: Date | null;
  finishedAt: Date | null;
}

type Conversation = Pick<
  typeof conversation.$inferSelect,
  "pluginSlug" | "externalId" | "weblink" | "archivedAt"
>;

/** A recommendation: who proposed it, and why. */
interface Proposed {
  pluginSlug: string;
  reasons: RecommendationReason[];
}

export interface IncidentDetail extends Incident {
  /** Who reported it, even if they have left. */
  reporter: Person | null;
  steps: Step[];
  conversations: Conversation[];
  participantGroups: Pick<
    typeof participantGroup.$inferSelect,
    "pluginSlug" | "name" | "email" | "weblink"
  >[];
  /** Recommendations. Documents only if the actor may read them. */
  documents: ({ documentId: number; name: string; weblink: string | null } & Proposed)[];
  individuals: ({ individualId: number; name: string; email: string } & Proposed)[];
  teams: ({ teamId: number; name: string } & Proposed)[];
}

/**
 * Returns the incident with this id or name (`INC-44`, in upper or lower case).
 * @throws NotFound also when the actor may not read it
 */
export async function getIncident(
  { db }: Context,
  actor: Actor,
  idOrName: number | string,
): Promise<IncidentDetail> {
  const reader = actor.user;
  const [found] = await (typeof idOrName === "number"
    ? byId(db, actor).execute({ id: idOrName, reader })
    : byName(db, actor).execute({ name: idOrName.toUpperCase(), reader }));
  if (!found) throw noSuchIncident();
  return found;
}

/** A list of objects as JSON, from one sub-select. */
const listOf = <T>(object: SQL, orderBy: SQL, rest: SQL) =>
  sql<T>`(select coalesce(json_agg(json_build_object(${object}) order by ${orderBy}), '[]') ${rest})`;

function proposed<T>(object: SQL, from: SQL): SQL<T> {
  return listOf(
    sql`${object}, 'pluginSlug', ${recommendation.pluginSlug}, 'reasons', ${recommendation.reasons}`,
    sql`${recommendation.id}`,
    sql`from ${recommendation} ${from} and ${recommendation.incidentId} = ${incident.id}`,
  );
}

type AsJson<T, Instant extends keyof T> = Omit<T, Instant> & Record<Instant, string | null>;
const dateOf = (instant: string | null) => (instant === null ? null : new Date(instant));

/** Parts that show nothing of other incidents, so any reader may see them. */
const parts = {
  steps: listOf(
    sql`'step', ${flowStep.step}, 'state', ${flowStep.state}, 'attempts', ${flowStep.attempts},
      'error', ${flowStep.error}, 'dueAt', ${flowStep.dueAt}, 'finishedAt', ${flowStep.finishedAt}`,
    sql`${flowStep.step}`,
    sql`from ${flowStep} where ${flowStep.incidentId} = ${incident.id}`,
  ).mapWith((steps: AsJson<Step, "dueAt" | "finishedAt">[]): Step[] =>
    steps.map((step) => ({ ...step, dueAt: dateOf(step.dueAt), finishedAt: dateOf(step.finishedAt) })),
  ),
  conversations: listOf(
    sql`'pluginSlug', ${conversation.pluginSlug}, 'externalId', ${conversation.externalId},
      'weblink', ${conversation.weblink}, 'archivedAt', ${conversation.archivedAt}`,
    sql`${conversation.id}`,
    sql`from ${conversation} where ${conversation.incidentId} = ${incident.id}`,
  ).mapWith((conversations: AsJson<Conversation, "archivedAt">[]): Conversation[] =>
    conversations.map((one) => ({ ...one, archivedAt: dateOf(one.archivedAt) })),
  ),
  participantGroups: listOf<IncidentDetail["participantGroups"]>(
    sql`'pluginSlug', ${participantGroup.pluginSlug}, 'name', ${participantGroup.name},
      'email', ${participantGroup.email}, 'weblink', ${participantGroup.weblink}`,
    sql`${participantGroup.id}`,
    sql`from ${participantGroup} where ${participantGroup.incidentId} = ${incident.id}`,
  ),
  individuals: proposed<IncidentDetail["individuals"]>(
    sql`'individualId', ${individual.id}, 'name', ${individual.name}, 'email', ${individual.email}`,
    sql`join ${individual} on ${individual.id} = ${recommendation.individualId} where true`,
  ),
  teams: proposed<IncidentDetail["teams"]>(
    sql`'teamId', ${team.id}, 'name', ${team.name}`,
    sql`join ${team} on ${team.id} = ${recommendation.teamId} where true`,
  ),
};

/** One statement, so that all parts are from the same moment and one condition covers them. */
const incidentQuery = (db: Context["db"], reader: AnyReader, isIt: SQL) =>
  db
    .select({
      ...incidentColumns,
      reporter: reporterOf,
      ...parts,
      documents: proposed<IncidentDetail["documents"]>(
        sql`'documentId', ${document.id}, 'name', ${document.name}, 'weblink', ${document.weblink}`,
        sql`join ${document} on ${document.id} = ${recommendation.documentId}
            where ${mayReadOf(reader, document.incidentId)}`,
      ),
    })
    .from(incident)
    .innerJoin(incidentType, eq(incidentType.id, incident.incidentTypeId))
    .innerJoin(incidentPriority, eq(incidentPriority.id, incident.incidentPriorityId))
    .where(and(isIt, mayReadIncident(reader)))
    .prepare("get_incident");

const byId = preparedForReaders((db, reader) =>
  incidentQuery(db, reader, eq(incident.id, sql.placeholder("id"))),
);
const byName = preparedForReaders((db, reader) =>
  incidentQuery(db, reader, eq(incident.name, sql.placeholder("name"))),
);
