import { eq, getTableName, max, sql } from "drizzle-orm";
import type { PgColumn, PgTable } from "drizzle-orm/pg-core";
import { populate } from "../../core/populate/populate.ts";
import type { Database, Transaction } from "../../drizzle/client.ts";
import * as tables from "../../drizzle/schema/index.ts";
import type { RecommendationReason } from "../../drizzle/schema/recommendation.ts";
import { Conflict } from "../../platform/errors.ts";
import { type ExampleRows, exampleTables, type Row, readExample, rowsAt } from "./data.ts";

export interface LoadedExample {
  incidents: number;
  documents: number;
  people: number;
}

/**
 * Inserts the example relative to `now`, and the defaults it needs, in one transaction. The schema must be at head.
 *
 * @throws Conflict when there are rows already: the example's ids are fixed, and it must not mix with real data
 */
export async function loadExample(db: Database | Transaction, now: Date): Promise<LoadedExample> {
  const rows = rowsAt(await readExample(), now);
  await db.transaction(async (tx) => {
    // Of two concurrent loads, the second waits, and then finds the rows of the first.
    await tx.execute(sql`lock table ${tables.incident} in share row exclusive mode`);
    await refuseOthers(tx);
    await populate(tx, { now: () => now });
    const withIds = resolver(rows, await readDefaults(tx));
    for (const [name, table] of Object.entries(exampleTables)) {
      await tx
        .insert(table as PgTable)
        .overridingSystemValue()
        .values(rows[name as keyof typeof exampleTables].map(withIds));
    }
    await setCommanders(tx, rows.incidentType.map(withIds));
    for (const table of numbered) await continueAfter(tx, table);
    await tx.execute(sql`select setval('incident_name_seq', (select max(id) from ${tables.incident}))`);
  });
  const { incident, document, individual } = rows;
  return { incidents: incident.length, documents: document.length, people: individual.length };
}

/** Tables with fixed ids in the example. */
const numbered = Object.values(exampleTables).filter((table) => "id" in table);

async function refuseOthers(tx: Transaction): Promise<void> {
  for (const table of numbered) {
    const found = await tx.select({ id: table.id }).from(table).limit(1);
    if (found.length === 0) continue;
    const what = getTableName(table).replaceAll("_", " ");
    throw new Conflict(`The example needs an empty database, but this one has data already (${what})`);
  }
}

type Ids = ReadonlyMap<unknown, unknown>;

async function readDefaults(tx: Transaction): Promise<{ types: Ids; priorities: Ids }> {
  const { incidentType, incidentPriority } = tables;
  const types = await tx.select({ name: incidentType.name, id: incidentType.id }).from(incidentType);
  const priorities = await tx
    .select({ name: incidentPriority.name, id: incidentPriority.id })
    .from(incidentPriority);
  return { types: idsBy("name", types), priorities: idsBy("name", priorities) };
}

function idsBy(key: string, rows: readonly Row[]): Ids {
  return new Map(rows.map((row) => [row[key], row.id]));
}

/** Replaces names by ids. */
function resolver(rows: ExampleRows, { types, priorities }: { types: Ids; priorities: Ids }) {
  const people = new Map(rows.individual.map(({ id, email }) => [String(email).split("@")[0], id]));
  const terms = idsBy("text", rows.term);
  const services = idsBy("name", rows.service);
  const idsOf: Readonly<Record<string, Ids>> = {
    incidentTypeId: types,
    incidentPriorityId: priorities,
    termId: terms,
    teamId: idsBy("name", rows.team),
    serviceId: services,
    commanderServiceId: services,
    individualId: people,
    authorId: people,
    recipientId: people,
    creatorId: people,
    ownerId: people,
  };
  const ofReason: Readonly<Record<string, string>> = {
    incident_type: "incidentTypeId",
    incident_priority: "incidentPriorityId",
    term: "termId",
  };
  const idOf = (column: string, name: unknown) => {
    const id = idsOf[column]?.get(name);
    if (id === undefined) throw new RangeError(`the example has no ${name} for ${column}`);
    return id;
  };
  const withId = (reason: RecommendationReason) => ({
    ...reason,
    id: idOf(ofReason[reason.kind] ?? reason.kind, reason.name),
  });
  return (row: Row): Row => {
    const resolved = Object.entries(row).map(([column, value]) => {
      if (column === "reasons") return [column, (value as RecommendationReason[]).map(withId)];
      return [column, column in idsOf && value !== undefined ? idOf(column, value) : value];
    });
    return Object.fromEntries(resolved);
  };
}

async function setCommanders(tx: Transaction, types: readonly Row[]): Promise<void> {
  const { incidentType } = tables;
  for (const { name, commanderServiceId } of types) {
    await tx
      .update(incidentType)
      .set({ commanderServiceId: commanderServiceId as number, version: sql`${incidentType.version} + 1` })
      .where(eq(incidentType.name, String(name)));
  }
}

/** Makes the next row of the table get the id after the highest. */
async function continueAfter(tx: Transaction, table: PgTable & { id: PgColumn }): Promise<void> {
  const [row] = await tx.select({ last: max(table.id) }).from(table);
  if (!row?.last) return;
  await tx.execute(sql`select setval(pg_get_serial_sequence(${getTableName(table)}, 'id'), ${row.last})`);
}
