import { and, eq, getTableColumns } from "drizzle-orm";
import type { SelectResultFields } from "drizzle-orm/query-builders/select.types";
import type { Database, Transaction } from "../../../drizzle/client.ts";
import {
  incident,
  incidentPriority,
  incidentType,
  type visibilities,
} from "../../../drizzle/schema/index.ts";
import { together } from "../../../drizzle/together.ts";
import { InvalidInput } from "../../../platform/errors.ts";
import { descriptionLength, parseName, parseText } from "../../../platform/text.ts";
import { mayReadIncident, type Reader } from "../visibility/visibility.ts";
import { commanderNow } from "./holder.ts";

const { search, costBasis, costedBasis, ...columns } = getTableColumns(incident);

/** The columns of an incident in a list, joined with its type and priority. */
export const incidentColumns = {
  ...columns,
  commander: commanderNow,
  incidentType: { id: incidentType.id, name: incidentType.name },
  incidentPriority: { id: incidentPriority.id, name: incidentPriority.name },
};

export type Visibility = (typeof visibilities)[number];
export type Incident = SelectResultFields<typeof incidentColumns>;

/** What the reporter writes, and anyone may edit later. */
export interface IncidentText {
  title: string;
  description: string;
}

/** @throws InvalidInput with the API's name of the field */
export function parseIncident({ title, description }: IncidentText): IncidentText {
  return {
    title: parseName("title", title),
    description: parseText("description", description, descriptionLength),
  };
}

/** Undefined if it does not exist or the reader may not read it. */
export async function findIncident(
  db: Database | Transaction,
  reader: Reader,
  id: number,
): Promise<Incident | undefined> {
  const [found] = await db
    .select(incidentColumns)
    .from(incident)
    .innerJoin(incidentType, eq(incidentType.id, incident.incidentTypeId))
    .innerJoin(incidentPriority, eq(incidentPriority.id, incident.incidentPriorityId))
    .where(and(eq(incident.id, id), mayReadIncident(reader)));
  return found;
}

/**
 * Returns the initial values of an incident of this type. Locks type and priority until the transaction ends.
 *
 * @throws InvalidInput when there is no such type or priority
 */
export async function lockKind(
  tx: Transaction,
  kind: { incidentTypeId: number; incidentPriorityId: number },
): Promise<{ visibility: Visibility }> {
  const [[type], [priority]] = await together([
    tx
      .select({ visibility: incidentType.visibility })
      .from(incidentType)
      .where(eq(incidentType.id, kind.incidentTypeId))
      .for("key share"),
    tx
      .select({ id: incidentPriority.id })
      .from(incidentPriority)
      .where(eq(incidentPriority.id, kind.incidentPriorityId))
      .for("key share"),
  ]);
  if (!type) throw new InvalidInput("incident_type_id", "There is no such incident type");
  if (!priority) throw new InvalidInput("incident_priority_id", "There is no such incident priority");
  return type;
}
