import type { PgColumn } from "drizzle-orm/pg-core";
import type { Transaction } from "../../drizzle/client.ts";
import { incidentPriority, incidentType } from "../../drizzle/schema/index.ts";
import { type Link, linkedIds, setLinks, type Target, toTerm } from "./link.ts";

/**
 * Why a plugin proposes a person, a team or a document: incidents of these types and priorities, or with these terms.
 */
export interface Reasons {
  incidentTypeIds: number[];
  incidentPriorityIds: number[];
  termIds: number[];
}

/** The tables that store the reasons of one kind of record. */
export type ReasonLinks = Readonly<Record<keyof Reasons, Omit<Link, "target">>>;

/** For each kind, the API's name of the field, and what it refers to. */
const kinds = {
  incidentTypeIds: { field: "incident_type_ids", target: { id: incidentType.id } },
  incidentPriorityIds: { field: "incident_priority_ids", target: { id: incidentPriority.id } },
  termIds: { field: "term_ids", target: toTerm },
} as const satisfies Record<keyof Reasons, { field: string; target: Target }>;

/** Columns of a SELECT: the reasons of the record with this id. */
export function reasonColumns(links: ReasonLinks, id: PgColumn) {
  const ids = (kind: keyof Reasons) => linkedIds({ ...links[kind], target: kinds[kind].target }, id);
  return {
    incidentTypeIds: ids("incidentTypeIds"),
    incidentPriorityIds: ids("incidentPriorityIds"),
    termIds: ids("termIds"),
  };
}

/**
 * Replaces the given reasons of a record.
 * @returns the kinds in which a reason was removed
 * @throws InvalidInput naming the field when a type, a priority or a term does not exist
 */
export async function setReasons(
  tx: Transaction,
  links: ReasonLinks,
  ownerId: number,
  reasons: Partial<Reasons>,
): Promise<Set<keyof Reasons>> {
  const lost = new Set<keyof Reasons>();
  for (const kind of ["incidentTypeIds", "incidentPriorityIds", "termIds"] as const) {
    const ids = reasons[kind];
    if (!ids) continue;
    const { field, target } = kinds[kind];
    if (await setLinks(tx, { ...links[kind], target }, { field, ownerId, ids })) lost.add(kind);
  }
  return lost;
}
