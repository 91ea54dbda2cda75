import { and, asc, eq, inArray, sql } from "drizzle-orm";
import type { PgColumn, PgTable } from "drizzle-orm/pg-core";
import type { Transaction } from "../../../drizzle/client.ts";
import { incident } from "../../../drizzle/schema/index.ts";
import { InvalidInput, NotFound } from "../../../platform/errors.ts";
import { noSuchIncident } from "../visibility/see.ts";
import { mayReadIncident, type Reader } from "../visibility/visibility.ts";

/**
 * Locks an incident until the transaction ends. A change of anything that belongs to it takes this lock first, and then
 * the time, so that such changes are serialised, and their times in the same order. `by` is the reader who must be allowed to see it. `"worker"` sees all.
 *
 * @throws NotFound
 */
export async function lockIncident(
  tx: Transaction,
  by: Reader | "worker",
  id: number,
): Promise<Pick<typeof incident.$inferSelect, "id" | "name" | "title" | "status" | "visibility">> {
  const visible = by === "worker" ? undefined : mayReadIncident(by);
  const { name, title, status, visibility } = incident;
  const [locked] = await tx
    .select({ id: incident.id, name, title, status, visibility })
    .from(incident)
    .where(and(eq(incident.id, id), visible))
    .for("no key update", { of: incident });
  if (!locked) throw noSuchIncident();
  // The previous holder of the lock may have removed the reader, which only a new statement sees.
  if (by !== "worker" && !by.admin && locked.visibility === "Restricted") {
    const [still] = await tx
      .select({ id: incident.id })
      .from(incident)
      .where(and(eq(incident.id, id), visible));
    if (!still) throw noSuchIncident();
  }
  return locked;
}

/**
 * The same for an incident that is named in this field of a request's body.
 *
 * @throws InvalidInput
 */
export async function lockNamedIncident(
  tx: Transaction,
  by: Reader,
  id: number,
  field = "incident_id",
): ReturnType<typeof lockIncident> {
  return lockIncident(tx, by, id).catch((error: unknown) => {
    if (error instanceof NotFound) throw new InvalidInput(field, "There is no such incident");
    throw error;
  });
}

/**
 * Locks the incident of a record, if it has one, before the record is changed or deleted. Deleting the incident uses the
 * same order, so that they cannot deadlock. If the reader `by` may not see the incident, nothing is locked.
 */
export async function lockIncidentOf(
  tx: Transaction,
  table: PgTable & Record<"id" | "incidentId", PgColumn>,
  id: number,
  by?: Reader,
): Promise<void> {
  const of = tx.select({ incidentId: table.incidentId }).from(table).where(eq(table.id, id));
  await tx
    .select({ id: incident.id })
    .from(incident)
    .where(and(eq(incident.id, sql`(${of})`), by && mayReadIncident(by)))
    .for("no key update", { of: incident });
}

/**
 * Locks several incidents in the order of their ids, so that two callers cannot deadlock. With `skipLocked`, it leaves out
 * those that another transaction has locked.
 *
 * @returns the ids of the locked incidents
 */
export async function lockIncidents(
  tx: Transaction,
  ids: readonly (number | null)[],
  { skipLocked = false } = {},
): Promise<Set<number | null>> {
  const wanted = ids.filter((id) => id !== null);
  if (wanted.length === 0) return new Set();
  const rows = await tx
    .select({ id: incident.id })
    .from(incident)
    .where(inArray(incident.id, wanted))
    .orderBy(asc(incident.id))
    .for("no key update", skipLocked ? { of: incident, skipLocked } : { of: incident });
  return new Set(rows.map(({ id }) => id));
}

/** Marks the incident's cost for recomputation (`incident.cost_basis`), in the transaction of a change. */
export async function costChanged(tx: Transaction, id: number): Promise<void> {
  await tx
    .update(incident)
    .set({ costBasis: sql`${incident.costBasis} + 1` })
    .where(eq(incident.id, id));
}
