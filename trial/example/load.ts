import { eq, getTableName, max, sql } from "drizzle-orm";
import type { PgColumn, PgTable } from "drizzle-orm/pg-core";
import { populate } from "../../core/populate/populate.ts";
import type { Database, Transaction } from "../../drizzle/client.ts";
import * as tables from "../../drizzle/schema/index.ts";
import { Conflict } from "../../platform/errors.ts";
import type { Example } from "./example.ts";
import { loadIncidents } from "./load_incidents.ts";
import { type Defaults, insertAll, linkRows, pairs } from "./rows.ts";

/**
 * Writes the example, and the defaults that it needs, in one transaction. The schema is at head.
 *
 * @throws Conflict when there is anything of the kind already: its ids are fixed, and it is not for real data
 */
export async function loadExample(db: Database | Transaction, example: Example): Promise<void> {
  await db.transaction(async (tx) => {
    // Of two at once the second one waits, and finds what the first has written.
    await tx.execute(sql`lock table ${tables.incident} in share row exclusive mode`);
    await refuseOthers(tx);
    await populate(tx, { now: () => example.now });
    const defaults = await readDefaults(tx);
    await loadOrganisation(tx, example, defaults);
    await loadIncidents(tx, example, defaults);
    for (const table of numbered) await continueAfter(tx, table);
    await tx.execute(sql`select setval('incident_name_seq', (select max(id) from ${tables.incident}))`);
  });
}

/** Tables whose ids the example brings along. */
const numbered: readonly (PgTable & { id: PgColumn })[] = [
  ...[tables.individual, tables.team, tables.service, tables.term, tables.definition, tables.application],
  ...[tables.incident, tables.document, tables.task, tables.participant, tables.participantRole],
  ...[tables.statusReport, tables.conversation, tables.conversationMessage, tables.participantGroup],
  ...[tables.participantGroupMember, tables.recommendation, tables.event],
];

async function refuseOthers(tx: Transaction): Promise<void> {
  for (const table of numbered) {
    const found = await tx.select({ id: table.id }).from(table).limit(1);
    if (found.length === 0) continue;
    const what = getTableName(table).replaceAll("_", " ");
    throw new Conflict(`The example goes into an empty database, and this one has data already (${what})`);
  }
}

async function readDefaults(tx: Transaction): Promise<Defaults> {
  const { incidentType: type, incidentPriority: priority } = tables;
  const types = await tx.select({ name: type.name, id: type.id }).from(type);
  const priorities = await tx.select({ name: priority.name, id: priority.id }).from(priority);
  const byName = (rows: typeof types) => new Map(rows.map(({ name, id }) => [name, id]));
  return { types: byName(types), priorities: byName(priorities) };
}

async function loadOrganisation(tx: Transaction, example: Example, defaults: Defaults): Promise<void> {
  const { individuals, teams, services, commanders } = example;
  const stamped = <T extends { at: Date }>({ at, ...rest }: T) => ({ ...rest, createdAt: at, updatedAt: at });
  await tx.insert(tables.individual).overridingSystemValue().values(individuals.map(stamped));
  await tx.insert(tables.team).overridingSystemValue().values(teams.map(stamped));
  await tx
    .insert(tables.service)
    .overridingSystemValue()
    .values(services.map((service) => ({ ...stamped(service), pluginSlug: "roster" })));
  await tx
    .insert(tables.rotation)
    .values(services.map(({ id: serviceId, rotation }) => ({ serviceId, ...rotation })));
  await tx
    .insert(tables.rotationMember)
    .values(
      services.flatMap(({ id: serviceId, rotation }) =>
        rotation.members.map((individualId, position) => ({ serviceId, individualId, position })),
      ),
    );
  const { incidentType } = tables;
  for (const { type, serviceId } of commanders) {
    await tx
      .update(incidentType)
      .set({ commanderServiceId: serviceId, version: sql`${incidentType.version} + 1` })
      .where(eq(incidentType.name, type));
  }
  await tx.insert(tables.term).overridingSystemValue().values(example.terms.map(stamped));
  await tx.insert(tables.definition).overridingSystemValue().values(example.definitions.map(stamped));
  await tx
    .insert(tables.definitionTerm)
    .values(example.definitions.flatMap(({ id, termIds }) => pairs("definitionId", id, "termId", termIds)));
  await tx.insert(tables.application).overridingSystemValue().values(example.applications.map(stamped));
  const ofPeople = linkRows(individuals, "individualId", defaults);
  await insertAll(tx, tables.individualIncidentType, ofPeople.types);
  await insertAll(tx, tables.individualIncidentPriority, ofPeople.priorities);
  await insertAll(tx, tables.individualTerm, ofPeople.terms);
  const ofTeams = linkRows(teams, "teamId", defaults);
  await insertAll(tx, tables.teamIncidentType, ofTeams.types);
  await insertAll(tx, tables.teamIncidentPriority, ofTeams.priorities);
  await insertAll(tx, tables.teamTerm, ofTeams.terms);
}

/** The next row of the table gets the id after the highest. */
async function continueAfter(tx: Transaction, table: PgTable & { id: PgColumn }): Promise<void> {
  const [row] = await tx.select({ last: max(table.id) }).from(table);
  if (!row?.last) return;
  await tx.execute(sql`select setval(pg_get_serial_sequence(${getTableName(table)}, 'id'), ${row.last})`);
}
