import { type SQL, sql } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";
import { incident, incidentLink } from "../../../drizzle/schema/index.ts";
import { NotFound } from "../../../platform/errors.ts";
import type { Incident } from "../incident/incident.ts";
import { type IncidentRef, mayReadIncident, type Reader } from "../visibility/visibility.ts";

/** What the other incident is to this one. */
export const linkSides = ["related", "duplicate_of", "duplicated_by"] as const;

export interface Link {
  id: number;
  kind: (typeof linkSides)[number];
  /** The other one. */
  incident: Pick<Incident, "id" | "name" | "title" | "status">;
  createdAt: Date;
}

/** The id of the incident at the other end. */
export const otherOf = (incidentId: IncidentRef | PgColumn): SQL =>
  sql`(case when ${incidentLink.incidentId} = ${incidentId} then ${incidentLink.linkedId} else ${incidentLink.incidentId} end)`;

/** A link is shown to those who may read both incidents. This is the condition for the other one. */
export const mayReadOther = (reader: Reader, incidentId: number): SQL =>
  sql`exists (select from ${incident} where ${incident.id} = ${otherOf(incidentId)} and (${mayReadIncident(reader)}))`;

export function noSuchLink(): NotFound {
  return new NotFound("There is no such link");
}
