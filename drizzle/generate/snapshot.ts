import { InvalidInput } from "../../platform/errors.ts";
import { givenName, withoutStrings } from "./names.ts";
import { isSerial } from "./types.ts";

/** A schema in drizzle-kit's format, version 7, as stored in a revision's snapshot.json. */
export type Snapshot = Record<string, unknown>;

/** The parts of it that this folder reads and writes. Tables have the key `schema.name`. */
export interface Schema {
  tables: Record<string, Table>;
  enums: Record<string, EnumType>;
  /** Names of the schemas other than public, mapped to themselves. */
  schemas: Record<string, string>;
  sequences: Record<string, Sequence>;
  views: Record<string, View>;
  [other: string]: unknown;
}

export interface Table {
  name: string;
  /** Empty for public. */
  schema: string;
  columns: Record<string, Column>;
  indexes: Record<string, Index>;
  foreignKeys: Record<string, ForeignKey>;
  compositePrimaryKeys: Record<string, PrimaryKey>;
  uniqueConstraints: Record<string, Unique>;
  policies: Record<string, Policy>;
  checkConstraints: Record<string, { name: string; value: string }>;
  isRLSEnabled: boolean;
}

export interface Column {
  name: string;
  type: string;
  /** The schema of the enum that is the type, or the element type. */
  typeSchema?: string;
  primaryKey: boolean;
  notNull: boolean;
  /** As SQL. */
  default?: string;
  generated?: { type: "stored"; as: string };
  identity?: Sequence & { type: "always" | "byDefault" };
}

export interface Sequence {
  name: string;
  schema: string;
  increment?: string;
  minValue?: string;
  maxValue?: string;
  startWith?: string;
  cache?: string;
  cycle?: boolean;
}

export interface Index {
  name: string;
  columns: { expression: string; isExpression: boolean; asc: boolean; nulls?: string; opclass?: string }[];
  isUnique: boolean;
  where?: string;
  concurrently: boolean;
  method: string;
  with: Record<string, unknown>;
}

export interface ForeignKey {
  name: string;
  tableFrom: string;
  tableTo: string;
  schemaTo?: string;
  columnsFrom: string[];
  columnsTo: string[];
  onDelete?: string;
  onUpdate?: string;
}

export interface Unique {
  name: string;
  columns: string[];
  nullsNotDistinct: boolean;
}

export interface EnumType {
  name: string;
  schema: string;
  values: string[];
}

export interface View {
  name: string;
  schema: string;
  definition?: string;
  materialized: boolean;
  isExisting: boolean;
  with?: Record<string, unknown>;
  withNoData?: boolean;
  tablespace?: string;
  using?: string;
}

export interface Policy {
  name: string;
  as: string;
  for: string;
  /** Role names. */
  to: string[];
  using?: string;
  withCheck?: string;
}

export interface PrimaryKey {
  name: string;
  columns: string[];
}

const parts = ["tables", "enums", "schemas", "sequences", "views"] as const;

/** An empty schema in the same format as `like`. */
export function emptyLike<T extends Snapshot>(like: T): T {
  return { ...like, ...Object.fromEntries(parts.map((part) => [part, {}])) };
}

/**
 * A copy to work on.
 * @throws InvalidInput for an invalid snapshot, and for SQL with a missing value
 */
export function readSnapshot(snapshot: Snapshot): Schema {
  if (snapshot.version !== "7" || snapshot.dialect !== "postgresql") {
    throw new InvalidInput("snapshot", "This is not a snapshot of a PostgreSQL schema, version 7");
  }
  const schema = copyOf({ ...emptyLike(snapshot), ...snapshot }) as Schema;
  for (const table of Object.values(schema.tables)) readTable(table);
  // Somebody else creates these.
  for (const [key, view] of Object.entries(schema.views)) if (view.isExisting) delete schema.views[key];
  for (const view of Object.values(schema.views)) refuseParameters(`view ${view.name}`, view.definition);
  return schema;
}

/** A deep copy whose records know no `constructor` or `toString` but their own. */
export function copyOf<T>(part: T): T {
  return JSON.parse(JSON.stringify(part), (_, value) =>
    typeof value === "object" && value !== null && !Array.isArray(value)
      ? Object.assign(Object.create(null), value)
      : value,
  );
}

export function primaryKeyOf(table: Table): PrimaryKey | undefined {
  return Object.values(table.compositePrimaryKeys)[0];
}

function readTable(table: Table): void {
  for (const part of ["uniqueConstraints", "policies", "checkConstraints"] as const) table[part] ??= {};
  table.isRLSEnabled ??= false;
  const refuse = (what: string, text?: string) => refuseParameters(`${what} of table ${table.name}`, text);
  for (const column of Object.values(table.columns)) {
    // Numbers and booleans are written unquoted.
    if (column.default !== undefined) column.default = String(column.default);
    refuse(`The default of column ${column.name}`, column.default);
    refuse(`Column ${column.name}`, column.generated?.as);
  }
  for (const [name, unique] of Object.entries(table.uniqueConstraints)) unique.name ??= name;
  // A primary key is always a constraint with a name, because drizzle-kit cannot drop one of a column.
  const keys = Object.values(table.columns).filter(({ primaryKey }) => primaryKey);
  const name = givenName(table.name, "", "pkey");
  if (keys.length > 0) table.compositePrimaryKeys[name] = { name, columns: keys.map((key) => key.name) };
  for (const column of Object.values(table.columns)) {
    column.primaryKey = false;
    // As PostgreSQL sees it.
    column.notNull ||=
      column.identity !== undefined ||
      isSerial(column) ||
      primaryKeyOf(table)?.columns.includes(column.name) === true;
  }
  for (const check of Object.values(table.checkConstraints)) refuse(`Check ${check.name}`, check.value);
  for (const index of Object.values(table.indexes)) {
    for (const { isExpression, expression } of index.columns) {
      if (isExpression) refuse(`Index ${index.name}`, expression);
    }
    refuse(`Index ${index.name}`, index.where);
  }
  for (const policy of Object.values(table.policies)) {
    refuse(`Policy ${policy.name}`, policy.using);
    refuse(`Policy ${policy.name}`, policy.withCheck);
  }
}

/** A value in a sql`` template becomes a parameter, which DDL does not allow. */
function refuseParameters(what: string, text: string | undefined): void {
  const [parameter] =
    withoutStrings(text ?? "")
      .replace(/"(?:[^"]|"")*"/g, '""')
      .match(/\$\d+/) ?? [];
  if (!parameter) return;
  throw new InvalidInput(
    "schema",
    `${what} holds ${parameter} in place of a value: write the value in the sql template itself, or with sql.raw()`,
  );
}
