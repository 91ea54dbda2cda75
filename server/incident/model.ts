import { Type } from "@sinclair/typebox";
import { type Static, t } from "elysia";
import type { IncidentQuery } from "../../core/incident/incident/list.ts";
import type { IncidentFields } from "../../core/incident/lifecycle/update.ts";
import { flowStepStates, incidentStatuses, visibilities } from "../../drizzle/schema/index.ts";
import { parseInstant } from "../../platform/instant.ts";
import { fromApi } from "../../platform/names.ts";
import { descriptionLength, nameLength } from "../../platform/text.ts";
import {
  closed,
  id,
  idText,
  incidentText,
  instant,
  listQuery,
  listQueryOf,
  nullable,
  oneOf,
  q,
  readOnly,
  version,
} from "../http/schema.ts";
import { personView } from "../participant/model.ts";

const title = t.String({ minLength: 1, maxLength: nameLength });
const description = t.String({ maxLength: descriptionLength });
const status = oneOf(incidentStatuses);
const visibility = oneOf(visibilities);
const userName = t.String({ minLength: 1, maxLength: nameLength });
const named = t.Object({ id, name: t.String() }, closed);

const view = {
  id,
  name: t.String({ description: "`INC-1`, `INC-2`, ..." }),
  title: t.String(),
  description: t.String(),
  status,
  visibility,
  incident_type_id: id,
  incident_type: named,
  incident_priority_id: id,
  incident_priority: named,
  resolution: nullable(t.String()),
  reported_at: instant,
  stable_at: nullable(instant),
  closed_at: nullable(instant),
  impact_started_at: nullable(instant),
  impact_ended_at: nullable(instant),
  commander: t.Union([personView, t.Null()], {
    description: "The current commander; null until a step finds one",
  }),
  cost: Type.Integer({ minimum: 0 }),
  version,
  created_at: instant,
  updated_at: instant,
};

export const incidentView = t.Object(view, closed);

const proposed = {
  plugin_slug: t.String(),
  reasons: t.Array(t.Object({ kind: t.String(), id: t.Optional(id), name: t.String() }, closed)),
};

const detail = {
  ...view,
  reporter: nullable(personView),
  steps: t.Array(
    t.Object(
      {
        step: t.String(),
        state: oneOf(flowStepStates),
        attempts: Type.Integer(),
        error: nullable(t.String()),
        due_at: nullable(instant),
        finished_at: nullable(instant),
      },
      closed,
    ),
  ),
  conversations: t.Array(
    t.Object(
      {
        plugin_slug: t.String(),
        external_id: nullable(t.String()),
        weblink: nullable(t.String()),
        archived_at: nullable(instant),
      },
      closed,
    ),
  ),
  participant_groups: t.Array(
    t.Object(
      {
        plugin_slug: t.String(),
        name: t.String(),
        email: nullable(t.String()),
        weblink: nullable(t.String()),
      },
      closed,
    ),
  ),
  documents: t.Array(
    t.Object({ document_id: id, name: t.String(), weblink: nullable(t.String()), ...proposed }, closed),
  ),
  individuals: t.Array(
    t.Object({ individual_id: id, name: t.String(), email: t.String(), ...proposed }, closed),
  ),
  teams: t.Array(t.Object({ team_id: id, name: t.String(), ...proposed }, closed)),
};

export const incidentDetail = t.Object(detail, closed);

export const incidentParams = t.Object({ incident_id: incidentText }, closed);

export const incidentQuery = listQuery(
  "`reported_at`, `-reported_at` (default), `id` or `-id`; with `q` by rank",
  {
    q,
    status: t.Optional(
      t.String({
        pattern: `^(${incidentStatuses.join("|")})(,(${incidentStatuses.join("|")})){0,2}$`,
        description: `One of ${incidentStatuses.join(", ")}, or several separated by commas: \`Active,Stable\``,
      }),
    ),
    visibility: t.Optional(visibility),
    incident_type_id: t.Optional(idText),
    incident_priority_id: t.Optional(idText),
    commander: t.Optional(t.String({ description: "The current commander's e-mail address" })),
    participant: t.Optional(t.String({ description: "A current participant's e-mail address" })),
    reported_after: t.Optional(t.String({ description: "Reported at this instant or later" })),
    reported_before: t.Optional(t.String({ description: "Reported before this instant" })),
    postmortem_due: t.Optional(
      t.Literal("true", {
        description: "Closed, of a type that asks for a post-mortem, and none was drafted or is linked",
      }),
    ),
  },
);

export const newIncident = t.Object(
  {
    title,
    description: t.Optional(description),
    incident_type_id: id,
    incident_priority_id: id,
    visibility: t.Optional(oneOf(visibilities, { description: "Default: that of the incident type" })),
    commander: t.Optional({
      ...userName,
      description: "The commander's e-mail address. Default: the person on call, or the reporter",
    }),
    participants: t.Optional(
      t.Array(userName, {
        maxItems: 50,
        description: "The e-mail addresses of those who take part from the start",
      }),
    ),
  },
  closed,
);

/** Not required, because older clients do not know it. */
const impact = (event: "started" | "ended") =>
  t.Optional(
    t.Union([instant, t.Null()], {
      description: `When the harm ${event}, not in the future; null clears it, and without the field it stays`,
    }),
  );

const written = {
  title,
  description,
  status,
  visibility,
  incident_type_id: id,
  incident_priority_id: id,
  resolution: nullable(description),
  impact_started_at: impact("started"),
  impact_ended_at: impact("ended"),
  version,
};

/** All other fields are required, since a PUT replaces the record and an omitted field would be lost. */
export const changedIncident = t.Object({ ...written, ...readOnly(detail, written) }, closed);

/** @throws InvalidInput for an invalid time */
export function queryOf(query: Static<typeof incidentQuery>): IncidentQuery {
  const { status, visibility, commander, participant, incident_type_id, incident_priority_id } = query;
  return {
    ...listQueryOf(query),
    statuses: status === undefined ? undefined : statusesOf(status),
    visibility,
    commander,
    participant,
    incidentTypeId: incident_type_id === undefined ? undefined : Number(incident_type_id),
    incidentPriorityId: incident_priority_id === undefined ? undefined : Number(incident_priority_id),
    reportedAfter: instantOf("reported_after", query.reported_after),
    reportedBefore: instantOf("reported_before", query.reported_before),
    postmortemDue: query.postmortem_due !== undefined,
  };
}

const statusesOf = (text: string) => incidentStatuses.filter((one) => text.split(",").includes(one));

const instantOf = (field: string, text: string | undefined) =>
  text === undefined ? undefined : parseInstant(field, text);

const impactOf = (field: string, text: string | null | undefined) =>
  text === null ? null : instantOf(field, text);

/** @throws InvalidInput for an invalid time */
export function fieldsOf(body: Static<typeof changedIncident>): IncidentFields {
  const { title, description, status, visibility, resolution, incidentTypeId, incidentPriorityId } =
    fromApi(body);
  return {
    title,
    description,
    status,
    visibility,
    resolution,
    incidentTypeId,
    incidentPriorityId,
    impactStartedAt: impactOf("impact_started_at", body.impact_started_at),
    impactEndedAt: impactOf("impact_ended_at", body.impact_ended_at),
  };
}
