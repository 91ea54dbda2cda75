import { and, asc, eq, isNull, sql } from "drizzle-orm";
import type { Database, Transaction } from "../../../drizzle/client.ts";
import { application, incidentApplication, incidentService, service } from "../../../drizzle/schema/index.ts";
import { together } from "../../../drizzle/together.ts";
import { keepTargets } from "../../catalog/link.ts";
import type { Actor, Context } from "../../context.ts";
import { lockIncident } from "../incident/lock.ts";
import { recordEvent } from "../timeline/event.ts";
import { maySee, seeIncident } from "../visibility/see.ts";
import { preparedForReaders } from "../visibility/visibility.ts";

interface Named {
  id: number;
  name: string;
}

/** What an incident affects, from the catalog. */
export interface Affected {
  services: Named[];
  applications: Named[];
}

/** The most services, and the most applications, of one incident. */
export const mostAffected = 100;

/** @throws NotFound when the actor may not read the incident */
export async function getAffected(context: Context, actor: Actor, incidentId: number): Promise<Affected> {
  await seeIncident(context, actor, incidentId);
  return affectedOf(context.db, actor, incidentId);
}

async function affectedOf(db: Database | Transaction, actor: Actor, id: number): Promise<Affected> {
  const values = { incidentId: id, reader: actor.user };
  const [services, applications] = await together([
    affectedServices(db, actor).execute(values),
    affectedApplications(db, actor).execute(values),
  ]);
  return { services, applications };
}

const of = sql.placeholder("incidentId");

const affectedServices = preparedForReaders((db, reader) =>
  db
    .select({ id: service.id, name: service.name })
    .from(incidentService)
    .innerJoin(service, eq(service.id, incidentService.serviceId))
    .where(and(eq(incidentService.incidentId, of), maySee(reader, of)))
    .orderBy(asc(service.name), asc(service.id))
    .prepare("affected_services"),
);

const affectedApplications = preparedForReaders((db, reader) =>
  db
    .select({ id: application.id, name: application.name })
    .from(incidentApplication)
    .innerJoin(application, eq(application.id, incidentApplication.applicationId))
    .where(and(eq(incidentApplication.incidentId, of), maySee(reader, of)))
    .orderBy(asc(application.name), asc(application.id))
    .prepare("affected_applications"),
);

/**
 * Replaces what an incident affects. Anyone who may read it may do so; the timeline tells of what has changed.
 *
 * @throws NotFound when the actor may not read the incident
 * @throws InvalidInput for a service or application that does not exist
 */
export async function setAffected(
  { db, clock }: Context,
  actor: Actor,
  wanted: { incidentId: number; serviceIds: readonly number[]; applicationIds: readonly number[] },
): Promise<Affected> {
  const { incidentId } = wanted;
  const serviceIds = [...new Set(wanted.serviceIds)].sort((a, b) => a - b);
  const applicationIds = [...new Set(wanted.applicationIds)].sort((a, b) => a - b);
  return db.transaction(async (tx) => {
    await lockIncident(tx, actor, incidentId);
    const at = clock.now();
    const before = await affectedOf(tx, actor, incidentId);
    const isSame = (had: Named[], ids: number[]) =>
      had.length === ids.length && had.every(({ id }) => ids.includes(id));
    if (isSame(before.services, serviceIds) && isSame(before.applications, applicationIds)) return before;
    await keepTargets(tx, { id: service.id }, "service_ids", serviceIds);
    // One that has vanished from its source stays affected.
    const added = applicationIds.filter((id) => !before.applications.some((had) => had.id === id));
    const applications = { id: application.id, present: isNull(application.deletedAt) };
    await keepTargets(tx, applications, "application_ids", added);
    await tx.delete(incidentService).where(eq(incidentService.incidentId, incidentId));
    await tx.delete(incidentApplication).where(eq(incidentApplication.incidentId, incidentId));
    if (serviceIds.length > 0)
      await tx.insert(incidentService).values(serviceIds.map((serviceId) => ({ incidentId, serviceId })));
    if (applicationIds.length > 0)
      await tx
        .insert(incidentApplication)
        .values(applicationIds.map((applicationId) => ({ incidentId, applicationId })));
    const after = await affectedOf(tx, actor, incidentId);
    const names = [...after.services, ...after.applications].map(({ name }) => name);
    await recordEvent(tx, {
      incidentId,
      at,
      actor: actor.user,
      kind: "incident.affects",
      description: names.length === 0 ? "Affects nothing in the catalog" : `Affects: ${names.join(", ")}`,
      data: { service_ids: serviceIds, application_ids: applicationIds },
    });
    return after;
  });
}
