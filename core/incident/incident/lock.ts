import { and, eq, type SQL, sql } from "drizzle-orm";
import type { PgColumn, PgTable } from "drizzle-orm/pg-core";
import type { Transaction } from "../../../drizzle/client.ts";
import { incident } from "../../../drizzle/schema/index.ts";
import { InvalidInput, NotFound } from "../../../platform/errors.ts";
import { noSuchIncident } from "../visibility/see.ts";
import { mayReadIncident, type Reader } from "../visibility/visibility.ts";

/**
 * Keeps an incident as it is until the transaction ends: whoever changes something that belongs to it takes this first,
 * so that two of them go one after the other. `by` is the reader who must be allowed to see it; `"worker"` sees all.
 *
 * @throws NotFound
 */
export async function lockIncident(
  tx: Transaction,
  by: Reader | "worker",
  id: number,
): Promise<Pick<typeof incident.$inferSelect, "id" | "name" | "title" | "status" | "visibility">> {
  const visible: SQL | undefined = by === "worker" ? undefined : mayReadIncident(by);
  const { name, title, status, visibility } = incident;
  const [locked] = await tx
    .select({ id: incident.id, name, title, status, visibility })
    .from(incident)
    .where(and(eq(incident.id, id), visible))
    .for("no key update", { of: incident });
  if (!locked) throw noSuchIncident();
  // Whoever had it before us may have taken the reader out, which only a statement that begins now sees.
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
 * The same for an incident that the body of a request names.
 *
 * @throws InvalidInput
 */
export async function lockNamedIncident(
  tx: Transaction,
  by: Reader,
  id: number,
): ReturnType<typeof lockIncident> {
  return lockIncident(tx, by, id).catch((error: unknown) => {
    if (error instanceof NotFound) throw new InvalidInput("incident_id", "There is no such incident");
    throw error;
  });
}

/**
 * For who deletes a record: takes its incident, if it has one, before the record itself. Whoever deletes the incident goes
 * the same way, and they never wait in a circle.
 */
export async function lockIncidentOf(
  tx: Transaction,
  table: PgTable & Record<"id" | "incidentId", PgColumn>,
  id: number,
): Promise<void> {
  const of = tx.select({ incidentId: table.incidentId }).from(table).where(eq(table.id, id));
  await tx
    .select({ id: incident.id })
    .from(incident)
    .where(eq(incident.id, sql`(${of})`))
    .for("no key update", { of: incident });
}

/** Notes in the transaction of a change that the incident's cost is to be computed anew (`incident.cost_basis`). */
export async function costChanged(tx: Transaction, id: number): Promise<void> {
  await tx
    .update(incident)
    .set({ costBasis: sql`${incident.costBasis} + 1` })
    .where(eq(incident.id, id));
}
