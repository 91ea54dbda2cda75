import { and, eq, gte, inArray, isNull, lt, type SQL, sql } from "drizzle-orm";
import {
  document,
  event,
  incident,
  incidentPriority,
  incidentType,
  individual,
  participant,
  participantRole,
} from "../../../drizzle/schema/index.ts";
import { parseUserName } from "../../auth/user/field.ts";
import type { Actor, Context } from "../../context.ts";
import { type List, type ListQuery, startPage } from "../../list/page.ts";
import { type AnyReader, mayReadIncident, type Reader, readableKinds } from "../visibility/visibility.ts";
import { type Incident, incidentColumns, type Visibility } from "./incident.ts";
import type { IncidentStatus } from "./transition.ts";

export interface IncidentQuery extends ListQuery {
  /** One or more, in a fixed order. */
  statuses?: readonly IncidentStatus[];
  visibility?: Visibility;
  incidentTypeId?: number;
  incidentPriorityId?: number;
  /** The current commander and a current participant: e-mail addresses. */
  commander?: string;
  participant?: string;
  /** Reported at that time or later; reported before that time. */
  reportedAfter?: Date;
  reportedBefore?: Date;
  /** Only those that are due a post-mortem. */
  postmortemDue?: boolean;
}

const incidents: List<"reported_at" | "id"> = {
  name: "incidents",
  id: incident.id,
  search: incident.search,
  sorts: {
    reported_at: { by: incident.reportedAt, kind: "instant" },
    id: { by: incident.id, kind: "id" },
  },
  defaultSort: "-reported_at",
};

/** Returns a page of the incidents that the actor may read, newest first. @throws InvalidInput */
export async function listIncidents(
  { db, config }: Context,
  actor: Actor,
  query: IncidentQuery,
): Promise<{ items: Incident[]; next_cursor: string | null }> {
  const { statuses, visibility, incidentTypeId, incidentPriorityId, reportedAfter, reportedBefore } = query;
  const { postmortemDue } = query;
  const addressOf = (field: "commander" | "participant") => {
    const address = query[field];
    return address === undefined ? undefined : parseUserName(field, address, config.domain);
  };
  const [commander, takesPart] = [addressOf("commander"), addressOf("participant")];
  const page = startPage(incidents, query, {
    visibility,
    incidentTypeId,
    incidentPriorityId,
    commander,
    takesPart,
    status: statuses?.join(),
    reportedAfter: reportedAfter?.toISOString(),
    reportedBefore: reportedBefore?.toISOString(),
    postmortemDue: postmortemDue ? 1 : undefined,
  });
  const select = (reader: Reader | AnyReader) =>
    db
      .select({ ...incidentColumns, key: page.key })
      .from(incident)
      .innerJoin(incidentType, eq(incidentType.id, incident.incidentTypeId))
      .innerJoin(incidentPriority, eq(incidentPriority.id, incident.incidentPriorityId))
      .where(
        page.within(
          and(
            mayReadIncident(reader),
            statuses === undefined ? undefined : isOneOf(statuses),
            visibility === undefined ? undefined : eq(incident.visibility, visibility),
            incidentTypeId === undefined ? undefined : eq(incident.incidentTypeId, incidentTypeId),
            incidentPriorityId === undefined
              ? undefined
              : eq(incident.incidentPriorityId, incidentPriorityId),
            // Implied by mayReadIncident. Repeated here, it makes PostgreSQL start with the actor's few incidents.
            visibility === "Restricted" && !actor.admin ? hasParticipant(actor.user) : undefined,
            commander === undefined ? undefined : isCommandedBy(commander),
            takesPart === undefined ? undefined : hasParticipant(takesPart),
            reportedAfter === undefined ? undefined : gte(incident.reportedAt, reportedAfter),
            reportedBefore === undefined ? undefined : lt(incident.reportedAt, reportedBefore),
            postmortemDue ? isDuePostmortem : undefined,
          ),
          readableKinds(reader),
        ),
      )
      .orderBy(...page.orderBy)
      .limit(page.limit);
  const rows = await page.run(db, actor, select);
  return page.finish(rows.map(({ key, ...item }) => ({ item, key })));
}

/** Closed, of a type that asks for one, not drafted, and not written elsewhere. */
const isDuePostmortem = sql`${incident.status} = 'Closed' and ${incidentType.postmortem} and not exists (
    select from ${event} where ${event.incidentId} = ${incident.id} and ${event.kind} = 'postmortem.drafted')
  and not exists (
    select from ${document} where ${document.incidentId} = ${incident.id}
      and ${document.resourceType} = 'review' and ${document.pluginSlug} is null and ${document.weblink} is not null)`;

/** With one status, PostgreSQL walks the index of that status in the order of the list. */
function isOneOf(statuses: readonly IncidentStatus[]): SQL {
  const [only, ...others] = statuses;
  return only !== undefined && others.length === 0
    ? eq(incident.status, only)
    : inArray(incident.status, [...statuses]);
}

/** Their active participations, starting from the person: `participant_individual_idx`. */
function hasParticipant(email: string, more?: SQL): SQL {
  return sql`${incident.id} in (
    select ${participant.incidentId} from ${participant}
    join ${individual} on ${individual.id} = ${participant.individualId}
    where ${and(eq(individual.email, email), isNull(participant.leftAt), more)})`;
}

function isCommandedBy(email: string): SQL {
  return hasParticipant(
    email,
    sql`exists (
      select from ${participantRole}
      where ${participantRole.participantId} = ${participant.id}
        and ${participantRole.role} = 'commander' and ${participantRole.renouncedAt} is null)`,
  );
}
