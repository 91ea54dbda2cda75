import type { Io } from "../io.ts";
import { type Incident, IncidentClient } from "./incident.ts";
import { putChange, type Replaced } from "./put_change.ts";

/** What a PUT of an incident replaces. */
export type IncidentFields = Pick<
  Incident,
  | "title"
  | "description"
  | "status"
  | "visibility"
  | "incident_type_id"
  | "incident_priority_id"
  | "resolution"
  | "impact_started_at"
  | "impact_ended_at"
>;

/**
 * Changes fields of an incident, like `putChange`. The server answers with the fields of a list.
 *
 * @param names the names of the types and priorities in the change
 * @param before as for `putChange`
 */
export async function changeIncident(
  client: IncidentClient,
  seen: Incident,
  change: Partial<IncidentFields>,
  names: Partial<Record<keyof IncidentFields, string>> = {},
  before: Partial<IncidentFields> = fieldsOf(seen),
): Promise<Incident> {
  let now: Incident = seen;
  const record: Replaced<Incident, IncidentFields> = {
    fieldsOf,
    put: (body) => client.call("PUT", `/incidents/${seen.id}`, body),
    refetch: async () => {
      now = await client.get(String(seen.id));
      return now;
    },
    label: (field) => `The ${labelOf(field)} of ${seen.name}`,
    shown: (value, field) => {
      if (field === "incident_type_id" && value === now.incident_type_id) return now.incident_type.name;
      if (field === "incident_priority_id" && value === now.incident_priority_id)
        return now.incident_priority.name;
      return names[field] ?? String(value ?? "");
    },
  };
  return putChange(seen, change, record, before);
}

/** The resolution as a text for `replaceText`. */
export function resolutionOf(io: Io, { id, name }: Incident) {
  return {
    label: `The resolution of ${name}`,
    textOf: ({ resolution }: Incident) => resolution ?? "",
    refetch: () => refetch(io, id),
  };
}

export function refetch(io: Io, id: number): Promise<Incident> {
  return IncidentClient.within(io, (client) => client.get(String(id)));
}

function labelOf(field: keyof IncidentFields): string {
  return field.replace(/^incident_|_id$/g, "").replace(/^impact_(start|end)ed_at$/, "$1 of the impact");
}

/** A server of an older release has no impact: its fields are undefined, and a PUT does not name them. */
export function fieldsOf(incident: Incident): IncidentFields {
  const { title, description, status, visibility, resolution } = incident;
  const { incident_type_id, incident_priority_id, impact_started_at, impact_ended_at } = incident;
  return {
    title,
    description,
    status,
    visibility,
    incident_type_id,
    incident_priority_id,
    resolution,
    impact_started_at,
    impact_ended_at,
  };
}
