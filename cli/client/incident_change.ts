import { Conflict } from "../../platform/errors.ts";
import { printable, printableLines } from "../text.ts";
import type { Incident, IncidentClient, IncidentDetail } from "./incident.ts";

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
>;

const attempts = 10;

/**
 * Changes fields of an incident that the user has seen. If somebody else changed it meanwhile, and not these fields, their
 * change stays and ours is added.
 *
 * @throws Conflict with both versions if somebody else changed the same field, and for what the server refuses
 */
export async function changeIncident(
  client: IncidentClient,
  seen: IncidentDetail,
  change: Partial<IncidentFields>,
  /** How ids are called. */
  names: Partial<Record<keyof IncidentFields, string>> = {},
): Promise<Incident> {
  let now: Incident = seen;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await client.call<Incident>("PUT", `/incidents/${seen.id}`, {
        ...{ ...fieldsOf(now), ...change, version: now.version },
      });
    } catch (error) {
      if (!(error instanceof Conflict) || attempt === attempts) throw error;
      const then = now.version;
      now = await client.get(String(seen.id));
      // Refused for another reason.
      if (now.version === then) throw error;
      const clashing = (Object.keys(change) as (keyof IncidentFields)[]).filter(
        (field) => now[field] !== seen[field] && now[field] !== change[field],
      );
      if (clashing.length > 0) throw bothVersions(now, { ...change, ...names }, clashing);
    }
  }
}

function fieldsOf(incident: Incident): IncidentFields {
  const { title, description, status, visibility, resolution } = incident;
  const { incident_type_id, incident_priority_id } = incident;
  return { title, description, status, visibility, incident_type_id, incident_priority_id, resolution };
}

function bothVersions(
  now: Incident,
  yours: Partial<Record<keyof IncidentFields, string | number | null>>,
  clashing: readonly (keyof IncidentFields)[],
): Conflict {
  const lines = clashing.flatMap((field) => {
    const what = printable(field.replace(/^incident_|_id$/g, ""));
    return [
      `The ${what} of ${now.name} was changed by somebody else meanwhile; nothing was saved.`,
      ...version("Theirs:", shownValue(now, field)),
      ...version("Yours: ", String(yours[field] ?? "")),
    ];
  });
  return new Conflict(lines.join("\n"));
}

function shownValue(now: Incident, field: keyof IncidentFields): string {
  if (field === "incident_type_id") return now.incident_type.name;
  if (field === "incident_priority_id") return now.incident_priority.name;
  return now[field] ?? "";
}

function version(label: string, text: string): string[] {
  const [first = "", ...more] = printableLines(text);
  return [`  ${label} ${first}`, ...more.map((line) => `          ${line}`)];
}
