import { is, SQL } from "drizzle-orm";
import * as pg from "drizzle-orm/pg-core";
import { InvalidInput } from "../../platform/errors.ts";
import { displayName, givenName, storedName, tableKey } from "./names.ts";

interface Named {
  kind: string;
  name: string;
  schema?: string;
}

/**
 * Refuses what drizzle-kit would lose or end the process for, and what PostgreSQL would refuse at the upgrade. Names are
 * compared as PostgreSQL stores them.
 * @throws InvalidInput for a duplicate or reserved name, a role of ours, a policy outside a table
 */
export function checkNames(things: readonly unknown[]): void {
  const tables = things.filter((thing) => is(thing, pg.PgTable));
  const policies = new Set(tables.flatMap((table) => pg.getTableConfig(table).policies));
  const relations: Named[] = [];
  const types: Named[] = [];
  for (const thing of things) {
    if (is(thing, pg.PgRole) && !("_existing" in thing && thing._existing))
      throw refused(
        `A role belongs to the server, not to this database: create ${thing.name} by hand, and mark it as .existing()`,
      );
    if (is(thing, pg.PgPolicy) && !policies.has(thing))
      throw refused(`Policy ${thing.name} is outside a table: move it into its table`);
    if (pg.isPgEnum(thing)) types.push({ kind: "enum", name: thing.enumName, schema: thing.schema });
    if (pg.isPgSequence(thing))
      relations.push({ kind: "sequence", name: thing.seqName!, schema: thing.schema });
    if (pg.isPgView(thing)) relations.push({ kind: "view", ...pg.getViewConfig(thing) });
    if (pg.isPgMaterializedView(thing))
      relations.push({ kind: "view", ...pg.getMaterializedViewConfig(thing) });
  }
  for (const table of tables) relations.push(...checkTable(table));
  const rows = relations.filter(({ kind }) => kind === "table" || kind === "view");
  refuseReserved([...types, ...relations]);
  refuseDuplicates("The schema", relations);
  refuseDuplicates("The schema", [...types, ...rows]);
}

/** Returns what shares its name space with tables. */
function checkTable(table: pg.PgTable): Named[] {
  const config = pg.getTableConfig(table);
  const { name, schema, columns } = config;
  const primary = columns.some((column) => column.primary) ? [givenName(name, "", "pkey")] : [];
  const primaryKeys = [...primary, ...config.primaryKeys.map((key) => key.getName())];
  const uniques = [
    ...columns.filter(({ isUnique }) => isUnique).map(({ uniqueName }) => uniqueName!),
    ...config.uniqueConstraints.map((it) => it.name ?? pg.uniqueKeyName(table, namesOf(it.columns))),
  ];
  const named = (kind: string, names: readonly string[]) => names.map((one) => ({ kind, name: one, schema }));
  const keys = [...named("primary key", primaryKeys), ...named("unique constraint", uniques)];
  const keysAndChecks = [
    ...keys,
    ...named("check", namesOf(config.checks)),
    ...named(
      "foreign key",
      config.foreignKeys.map((key) => key.getName()),
    ),
  ];
  const indexes = named(
    "index",
    config.indexes.map((index) => indexName(index, name)),
  );
  const policies = named("policy", namesOf(config.policies));
  const where = `Table ${displayName({ schema, name })}`;
  refuseInherited(where, [...named("column", namesOf(columns)), ...keysAndChecks, ...indexes, ...policies]);
  refuseDuplicates(where, named("column", namesOf(columns)));
  refuseDuplicates(where, policies);
  refuseDuplicates(where, keysAndChecks);
  refuseDuplicates(where, indexes);
  return [{ kind: "table", name, schema }, ...keys, ...indexes];
}

const namesOf = (things: readonly { name: string }[]) => things.map(({ name }) => name);

function indexName({ config }: pg.Index, table: string): string {
  if (config.name) return config.name;
  if (config.columns.some((column) => is(column, SQL)))
    throw refused(`An index of table ${table} is on an expression: give it a name`);
  return `${table}_${namesOf(config.columns as pg.IndexedColumn[] as { name: string }[]).join("_")}_index`;
}

function refuseDuplicates(where: string, things: readonly Named[]): void {
  const known = new Map<string, Named>();
  for (const thing of things) {
    const key = tableKey({ ...thing, name: storedName(thing.name) });
    const other = known.get(key);
    known.set(key, thing);
    if (!other) continue;
    const what =
      other.kind === thing.kind
        ? `two ${plural(thing.kind)}`
        : `${article(other.kind)} and ${article(thing.kind)}`;
    throw refused(
      other.name === thing.name
        ? `${where} has ${what} named ${displayName(thing)}: rename one of them`
        : `${where} has ${what} whose names PostgreSQL shortens to the same ${storedName(thing.name)}: ${displayName(other)} and ${displayName(thing)}. Rename one of them`,
    );
  }
}

/** drizzle-kit keeps these in objects by name, where it finds `constructor` and loses `__proto__`. */
function refuseInherited(where: string, things: readonly Named[]): void {
  const lost = things.find(
    ({ kind, name }) =>
      name === "__proto__" || (/^(unique constraint|policy)$/.test(kind) && name in Object.prototype),
  );
  if (lost)
    throw refused(
      `${where} has ${article(lost.kind)} named ${lost.name}, which drizzle-kit cannot read: rename it`,
    );
}

/** @throws InvalidInput for a name that conflicts with the table `revision`, its row type or its key */
function refuseReserved(things: readonly Named[]): void {
  const taken = things.find(
    ({ name, schema }) => ["revision", "revision_pkey"].includes(name) && (schema || "public") === "public",
  );
  if (taken)
    throw refused(
      `The ${taken.kind} ${taken.name} has a name that svc reserves for its table of applied revisions: choose another name`,
    );
}

const refused = (text: string) => new InvalidInput("schema", text);
const article = (kind: string) => `${/^[aeiou](?!ni)/.test(kind) ? "an" : "a"} ${kind}`;
const plural = (kind: string) => ({ index: "indexes", policy: "policies" })[kind] ?? `${kind}s`;
