import type { PgColumn } from "drizzle-orm/pg-core";
import type { Transaction } from "../../drizzle/client.ts";
import { type Link, linkedIds, setLinks } from "./link.ts";

/**
 * Why a plugin proposes a person, a team or a document: incidents of these types and priorities, or with these terms.
 */
export interface Reasons {
  incidentTypeIds: number[];
  incidentPriorityIds: number[];
  termIds: number[];
}

/** The tables that store the reasons of one kind of record. */
export type ReasonLinks = Readonly<Record<keyof Reasons, Link>>;

const fields = {
  incidentTypeIds: "incident_type_ids",
  incidentPriorityIds: "incident_priority_ids",
  termIds: "term_ids",
} as const satisfies Record<keyof Reasons, string>;

/** Columns of a SELECT: the reasons of the record with this id. */
export function reasonColumns(links: ReasonLinks, id: PgColumn) {
  return {
    incidentTypeIds: linkedIds(links.incidentTypeIds, id),
    incidentPriorityIds: linkedIds(links.incidentPriorityIds, id),
    termIds: linkedIds(links.termIds, id),
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
    if (ids && (await setLinks(tx, links[kind], { field: fields[kind], ownerId, ids }))) lost.add(kind);
  }
  return lost;
}
