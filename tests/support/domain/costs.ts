import { sql } from "drizzle-orm";
import type { Database } from "../../../drizzle/client.ts";
import {
  incident,
  incidentPriority,
  incidentType,
  individual,
  participant,
  participantRole,
} from "../../../drizzle/schema/index.ts";
import type { RoleInterval } from "./cost_formula.ts";

export interface CostCase {
  stableAt: Date | null;
  roles: readonly RoleInterval[];
}

/** Inserts what incidents need: a type, a priority, and people with the ids 1 to `people`. */
export async function prepareCosts(db: Database, at: Date, people: number) {
  const stamps = { createdAt: at, updatedAt: at };
  const [type] = await db
    .insert(incidentType)
    .values({ name: "Outage", ...stamps })
    .returning();
  const [priority] = await db
    .insert(incidentPriority)
    .values({ name: "Urgent", reminderHours: 2, ...stamps })
    .returning();
  const names = Array.from({ length: people }, (_, i) => `person${i + 1}`);
  const individuals = await db
    .insert(individual)
    .values(names.map((name) => ({ name, email: `${name}@example.com`, ...stamps })))
    .returning({ id: individual.id });
  return { at, incidentTypeId: type!.id, incidentPriorityId: priority!.id, individuals };
}

/** Inserts an incident whose people have the roles of the case, each person as one participant. */
export async function insertCase(
  db: Database,
  { at, individuals, ...kinds }: Awaited<ReturnType<typeof prepareCosts>>,
  { stableAt, roles }: CostCase,
): Promise<number> {
  const [row] = await db
    .insert(incident)
    .values({
      title: "x",
      description: "x",
      reportedAt: at,
      createdAt: at,
      updatedAt: at,
      ...kinds,
      stableAt,
      status: stableAt ? ("Stable" as const) : ("Active" as const),
    })
    .returning({ id: incident.id });
  const incidentId = row!.id;
  for (const person of new Set(roles.map((one) => one.person))) {
    const [joined] = await db
      .insert(participant)
      .values({ incidentId, individualId: individuals[person - 1]!.id, joinedAt: at })
      .returning({ id: participant.id });
    for (const { role, assumedAt, renouncedAt } of roles.filter((one) => one.person === person)) {
      await db
        .insert(participantRole)
        .values({ participantId: joined!.id, incidentId, role, assumedAt, renouncedAt });
    }
  }
  return incidentId;
}

/** Inserts many incidents, each with a commander and a reporter. The last ones are Active. */
export async function insertMany(
  db: Database,
  { at, individuals, incidentTypeId, incidentPriorityId }: Awaited<ReturnType<typeof prepareCosts>>,
  { incidents, active }: { incidents: number; active: number },
): Promise<void> {
  const time = at.toISOString();
  await db.execute(sql`
    with made as (
      insert into incident (title, description, reported_at, created_at, updated_at, incident_type_id,
        incident_priority_id, status, stable_at, costed_basis)
      select 'x', 'x', t, t, t, ${incidentTypeId}::bigint, ${incidentPriorityId}::bigint,
        case when n > ${incidents - active}::int then 'Active' else 'Stable' end,
        case when n > ${incidents - active}::int then null else t + interval '2 h' end, 1
      from generate_series(1, ${incidents}::int) n, (select ${time}::timestamptz as t) as fixed
      returning id
    ), joined as (
      insert into participant (incident_id, individual_id, joined_at)
      select made.id, i.id, ${time}::timestamptz from made, individual i where i.id = any(${`{${individuals
        .slice(0, 2)
        .map(({ id }) => id)
        .join(",")}}`}::bigint[])
      returning id, incident_id, individual_id
    )
    insert into participant_role (participant_id, incident_id, role, assumed_at)
    select id, incident_id, case when individual_id = ${individuals[0]!.id}::bigint then 'commander' else 'reporter' end,
      ${time}::timestamptz from joined`);
  await db.execute("analyze");
}
