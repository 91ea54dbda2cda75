import { is, SQL } from "drizzle-orm";
import * as pg from "drizzle-orm/pg-core";
import { InvalidInput } from "../../platform/errors.ts";
import { displayName, literal, tableKey } from "./names.ts";
import type { Snapshot } from "./snapshot.ts";

// Converts a module of tables to a snapshot in drizzle-kit's format, version 7, so that its tools can read it.

/** The predecessor of the first snapshot. */
const originId = "00000000-0000-0000-0000-000000000000";

/** A new dialect each time: it caches a table's columns by name, and another module may have a table of that name. */
const textOf = (sql: SQL, source?: "indexes") => new pg.PgDialect().sqlToQuery(sql, source).sql;
const textOfAny = (sql: SQL | undefined) => sql && textOf(sql);

const whole = (kinds: string) => ["The schema", kinds] as const;

/**
 * Creates the snapshot of a module of tables.
 * @throws InvalidInput for a duplicate name, and for what cannot be written as SQL
 */
export function snapshotOf(module: Record<string, unknown>, previousId = originId): Snapshot {
  // An object may be exported under several names.
  const things = [...new Set(Object.values(module))];
  const tables = things.filter((thing) => is(thing, pg.PgTable));
  refuseLoose(things, new Set(tables.flatMap((table) => pg.getTableConfig(table).policies)));
  const read = tables.map(readTable);
  // Index names are unique across tables.
  const indexes = read.flatMap(({ schema, indexes }) =>
    Object.values(indexes).map(({ name }) => ({ schema, name })),
  );
  byName(whole("indexes"), indexes, tableKey);
  const schemas = things.filter((thing) => is(thing, pg.PgSchema)).map(({ schemaName }) => schemaName);
  return {
    id: crypto.randomUUID(),
    prevId: previousId,
    version: "7",
    dialect: "postgresql",
    tables: byName(whole("tables"), read, tableKey),
    enums: byName(whole("enums"), things.filter(pg.isPgEnum).map(readEnum), tableKey),
    schemas: Object.fromEntries(schemas.filter((name) => name !== "public").map((name) => [name, name])),
    sequences: byName(whole("sequences"), things.filter(pg.isPgSequence).map(readSequence), tableKey),
    views: byName(whole("views"), things.flatMap(readView), tableKey),
    roles: {},
    policies: {},
    _meta: { schemas: {}, tables: {}, columns: {} },
  };
}

/** @throws InvalidInput for what revisions cannot track: a role of ours, a policy outside a table */
function refuseLoose(things: readonly unknown[], policies: ReadonlySet<unknown>): void {
  for (const thing of things) {
    if (is(thing, pg.PgRole) && !("_existing" in thing && thing._existing))
      throw new InvalidInput(
        "schema",
        `A role belongs to the server, not to this database: create ${thing.name} by hand, and mark it as .existing()`,
      );
    if (is(thing, pg.PgPolicy) && !policies.has(thing))
      throw new InvalidInput("schema", `Policy ${thing.name} is outside a table: move it into its table`);
  }
}

/** @throws InvalidInput for a duplicate name, mentioning `place` */
function byName<T extends { name: string; schema?: string }>(
  [place, kinds]: readonly [string, string],
  things: readonly T[],
  keyOf: (thing: T) => string = ({ name }) => name,
): Record<string, T> {
  const known = new Map<string, T>();
  for (const thing of things) {
    if (known.has(keyOf(thing)))
      throw new InvalidInput(
        "schema",
        `${place} has two ${kinds} named ${displayName(thing)}: rename one of them`,
      );
    known.set(keyOf(thing), thing);
  }
  return Object.fromEntries(known);
}

function readTable(table: pg.PgTable) {
  const config = pg.getTableConfig(table);
  const { name, schema } = config;
  const columns = config.columns.map((column) => readColumn(column, name, schema));
  const uniques = [
    ...config.columns
      .filter((column) => column.isUnique)
      .map((column) => ({
        name: column.uniqueName!,
        nullsNotDistinct: column.uniqueType === "not distinct",
        columns: [column.name],
      })),
    ...config.uniqueConstraints.map((unique) => {
      const columns = namesOf(unique.columns);
      const name = unique.name ?? pg.uniqueKeyName(table, columns);
      return { name, nullsNotDistinct: unique.nullsNotDistinct, columns };
    }),
  ];
  const primaryKeys = config.primaryKeys.map((key) => ({
    name: key.getName(),
    columns: namesOf(key.columns),
  }));
  const checks = config.checks.map((check) => ({ name: check.name, value: textOf(check.value) }));
  const of = (kinds: string) => [`Table ${displayName({ schema, name })}`, kinds] as const;
  return {
    name,
    schema: schema ?? "",
    columns: byName(of("columns"), columns),
    indexes: byName(
      of("indexes"),
      config.indexes.map((index) => readIndex(index, name)),
    ),
    foreignKeys: byName(of("foreign keys"), config.foreignKeys.map(readForeignKey)),
    compositePrimaryKeys: byName(of("primary keys"), primaryKeys),
    uniqueConstraints: byName(of("unique constraints"), uniques),
    policies: byName(of("policies"), config.policies.map(readPolicy)),
    checkConstraints: byName(of("checks"), checks),
    isRLSEnabled: config.enableRLS,
  };
}

const namesOf = (columns: readonly { name: string }[]) => columns.map(({ name }) => name);

function readColumn(column: pg.PgColumn, table: string, schema: string | undefined) {
  const { name, generated, generatedIdentity: identity } = column;
  const type = column.getSQLType();
  let element: object = column;
  while (is(element, pg.PgArray)) element = element.baseColumn;
  const isEnum = is(element, pg.PgEnumColumn) || is(element, pg.PgEnumObjectColumn);
  const typeSchema = isEnum ? (element as pg.PgEnumColumn<never>).enum.schema || "public" : undefined;
  return {
    name,
    type,
    typeSchema,
    primaryKey: column.primary,
    notNull: column.notNull,
    generated: generated && { as: generatedText(generated.as), type: "stored" },
    identity: identity && {
      type: identity.type,
      name: identity.sequenceName ?? `${table}_${name}_seq`,
      schema: schema ?? "public",
      ...sequenceOptions(identity.sequenceOptions, type),
    },
    default: defaultOf(column, table),
  };
}

function generatedText(as: unknown): unknown {
  const given: unknown = typeof as === "function" ? as() : as;
  return is(given, SQL) ? textOf(given) : given;
}

/**
 * The default as SQL; numbers and booleans stay as they are, like in drizzle-kit. @throws InvalidInput for any other
 * object
 */
function defaultOf(column: pg.PgColumn, table: string): string | number | boolean | undefined {
  const value: unknown = column.default;
  const type = column.getSQLType().toLowerCase();
  if (value === undefined || value === null) return undefined;
  if (is(value, SQL)) return textOf(value);
  if (typeof value === "number" || typeof value === "boolean") return value;
  if (typeof value === "bigint") return String(value);
  if (typeof value === "string") return literal(value);
  if (/^jsonb?$/.test(type)) return `${literal(JSON.stringify(value))}::${type}`;
  // Types without a time zone or a time ignore the excess part.
  if (value instanceof Date) return literal(value.toISOString());
  if (Array.isArray(value) && /\[\d*\]$/.test(type)) return literal(arrayText(value));
  throw new InvalidInput(
    "schema",
    `The default of ${table}.${column.name} is an object, which cannot be written as SQL: use sql\`...\``,
  );
}

/** PostgreSQL's array syntax (manual, 8.15.6). */
function arrayText(values: readonly unknown[]): string {
  const quoted = (text: string) => `"${text.replace(/["\\]/g, "\\$&")}"`;
  const elements = values.map((value) => {
    if (value === null || value === undefined) return "NULL";
    if (Array.isArray(value)) return arrayText(value);
    if (value instanceof Date) return quoted(value.toISOString());
    if (typeof value === "object") return quoted(JSON.stringify(value));
    return typeof value === "string" ? quoted(value) : String(value);
  });
  return `{${elements.join(",")}}`;
}

const ranges: Record<string, [string, string]> = {
  smallint: ["-32768", "32767"],
  integer: ["-2147483648", "2147483647"],
  bigint: ["-9223372036854775808", "9223372036854775807"],
};

/** PostgreSQL's defaults for missing options. */
function sequenceOptions(options: pg.PgSequenceOptions = {}, type = "bigint") {
  const [least, most] = ranges[type] ?? ranges.smallint!;
  const increment = String(options.increment ?? "1");
  const isDown = increment.startsWith("-");
  const minValue = String(options.minValue ?? (isDown ? least : "1"));
  const maxValue = String(options.maxValue ?? (isDown ? "-1" : most));
  return {
    increment,
    startWith: String(options.startWith ?? (isDown ? maxValue : minValue)),
    minValue,
    maxValue,
    cache: String(options.cache ?? "1"),
    cycle: options.cycle ?? false,
  };
}

function readIndex({ config }: pg.Index, table: string) {
  const columns = config.columns.map((column) => {
    if (is(column, SQL))
      return { expression: textOf(column, "indexes"), asc: true, isExpression: true, nulls: "last" };
    const { name, indexConfig } = column as pg.IndexedColumn;
    const { order, nulls, opClass } = indexConfig;
    return {
      expression: name!,
      isExpression: false,
      asc: order === "asc",
      nulls: nulls ?? (order === "desc" ? "first" : "last"),
      opclass: opClass,
    };
  });
  if (!config.name && columns.some(({ isExpression }) => isExpression))
    throw new InvalidInput("schema", `An index of table ${table} is on an expression: give it a name`);
  return {
    name: config.name || `${table}_${columns.map(({ expression }) => expression).join("_")}_index`,
    columns,
    isUnique: config.unique ?? false,
    where: textOfAny(config.where),
    concurrently: config.concurrently ?? false,
    method: config.method ?? "btree",
    with: config.with ?? {},
  };
}

function readForeignKey(key: pg.ForeignKey) {
  const { columns, foreignColumns, foreignTable } = key.reference();
  const [own, target] = [pg.getTableConfig(key.table), pg.getTableConfig(foreignTable)];
  return {
    name: key.getName(),
    tableFrom: own.name,
    tableTo: target.name,
    schemaTo: target.schema,
    columnsFrom: namesOf(columns),
    columnsTo: namesOf(foreignColumns),
    onDelete: key.onDelete,
    onUpdate: key.onUpdate,
  };
}

function readPolicy(policy: pg.PgPolicy) {
  return {
    name: policy.name,
    as: policy.as?.toUpperCase() ?? "PERMISSIVE",
    for: policy.for?.toUpperCase() ?? "ALL",
    to: [policy.to ?? "public"]
      .flat()
      .map((role) => (is(role, pg.PgRole) ? role.name : String(role)))
      .sort(),
    using: textOfAny(policy.using),
    withCheck: textOfAny(policy.withCheck),
  };
}

function readEnum(type: pg.PgEnum<[string, ...string[]]>) {
  return { name: type.enumName, schema: type.schema || "public", values: type.enumValues };
}

function readSequence({ seqName, schema = "public", seqOptions }: pg.PgSequence) {
  return { name: seqName!, schema, ...sequenceOptions(seqOptions) };
}

function readView(thing: unknown) {
  if (!pg.isPgView(thing) && !pg.isPgMaterializedView(thing)) return [];
  const materialized = pg.isPgMaterializedView(thing);
  const config = materialized ? pg.getMaterializedViewConfig(thing) : pg.getViewConfig(thing);
  const { name, schema = "public", query, isExisting, with: options } = config;
  const { tablespace, using, withNoData } = config as Partial<
    ReturnType<typeof pg.getMaterializedViewConfig>
  >;
  return [
    {
      name,
      schema,
      isExisting,
      materialized,
      columns: {},
      definition: isExisting ? undefined : textOfAny(query),
      with: options,
      withNoData,
      tablespace,
      using,
    },
  ];
}
