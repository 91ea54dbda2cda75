import type { PgColumn } from "drizzle-orm/pg-core";
import type { Transaction } from "../../drizzle/client.ts";
import { type Link, linkedIds, setLinks } from "./link.ts";

/** What a plugin proposes a person, a team or a document for: incidents of these types, priorities, and terms. */
export interface Reasons {
  incidentTypeIds: number[];
  incidentPriorityIds: number[];
  termIds: number[];
}

/** The tables that keep the reasons of one kind of record. */
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
 * Replaces those reasons of a record that are given.
 * @returns the kinds of which it has lost one
 * @throws InvalidInput naming the field when a type, a priority or a term is not there
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
