import { literal, qualified, quote } from "./names.ts";
import { identityOf, optionsOf } from "./sequences.ts";
import type {
  Column,
  EnumType,
  ForeignKey,
  Index,
  PrimaryKey,
  Sequence,
  Table,
  Unique,
  View,
} from "./snapshot.ts";
import { typeName } from "./types.ts";

// The statements that create objects, one each. create.ts decides which ones, and in what order.

export const createSchema = (name: string) => `CREATE SCHEMA ${quote(name)};`;

export const createEnum = (type: EnumType) =>
  `CREATE TYPE ${inSchema(type)} AS ENUM(${type.values.map(literal).join(", ")});`;

export const createSequence = (sequence: Sequence) =>
  `CREATE SEQUENCE ${inSchema(sequence)}${optionsOf(sequence)}${sequence.cycle ? " CYCLE" : ""};`;

/** Includes columns, keys and checks; indexes, foreign keys and policies are added later. */
export function createTable(table: Table): string {
  const lines = [
    ...Object.values(table.columns).map((column) => columnOf(table, column)),
    ...Object.values(table.compositePrimaryKeys).slice(0, 1).map(primaryKeyOf),
    ...Object.values(table.uniqueConstraints).map(uniqueOf),
    ...Object.values(table.checkConstraints).map(checkOf),
  ];
  return `CREATE TABLE ${qualified(table)} (\n${lines.map((line) => `  ${line}`).join(",\n")}\n);`;
}

export const addColumn = (table: Table, column: Column) =>
  `ALTER TABLE ${qualified(table)} ADD COLUMN ${columnOf(table, column)};`;

export const addPrimaryKey = (table: Table, key: PrimaryKey) =>
  `ALTER TABLE ${qualified(table)} ADD ${primaryKeyOf(key)};`;

export const addUnique = (table: Table, unique: Unique) =>
  `ALTER TABLE ${qualified(table)} ADD ${uniqueOf(unique)};`;

export const addCheck = (table: Table, check: Table["checkConstraints"][string]) =>
  `ALTER TABLE ${qualified(table)} ADD ${checkOf(check)};`;

export function addForeignKey(table: Table, key: ForeignKey): string {
  const target = inSchema({ schema: key.schemaTo, name: key.tableTo });
  const onDelete = key.onDelete ? ` ON DELETE ${key.onDelete}` : "";
  const onUpdate = key.onUpdate ? ` ON UPDATE ${key.onUpdate}` : "";
  const own = `CONSTRAINT ${quote(key.name)} FOREIGN KEY ${list(key.columnsFrom)}`;
  return `ALTER TABLE ${qualified(table)} ADD ${own} REFERENCES ${target}${list(key.columnsTo)}${onDelete}${onUpdate};`;
}

export function createIndex(table: Table, index: Index): string {
  const parts = index.columns.map(({ expression, isExpression, opclass, asc, nulls }) => {
    const order = `${asc ? "" : " DESC"}${asc && nulls === "last" ? "" : ` NULLS ${nulls?.toUpperCase()}`}`;
    return `${isExpression ? expression : quote(expression)}${opclass ? ` ${opclass}` : ""}${order}`;
  });
  const how = `${index.isUnique ? "UNIQUE " : ""}INDEX${index.concurrently ? " CONCURRENTLY" : ""}`;
  const options = Object.entries(index.with).map(([key, value]) => `${key}=${value}`);
  const given = options.length > 0 ? ` WITH (${options.join(",")})` : "";
  const where = index.where ? ` WHERE ${index.where}` : "";
  return `CREATE ${how} ${quote(index.name)} ON ${qualified(table)} USING ${index.method} (${parts.join(",")})${given}${where};`;
}

export function createPolicy(table: Table, policy: Table["policies"][string]): string {
  const roles = policy.to.map((role) => (keyRoles.has(role) ? role : quote(role))).join(", ");
  const using = policy.using ? ` USING (${policy.using})` : "";
  const check = policy.withCheck ? ` WITH CHECK (${policy.withCheck})` : "";
  return `CREATE POLICY ${quote(policy.name)} ON ${qualified(table)} AS ${policy.as} FOR ${policy.for} TO ${roles}${using}${check};`;
}

export function createView(view: View): string {
  const options = Object.entries(view.with ?? {}).map(([key, value]) => `${snakeCase(key)} = ${value}`);
  return [
    `CREATE ${view.materialized ? "MATERIALIZED " : ""}VIEW ${inSchema(view)}`,
    view.using ? ` USING ${quote(view.using)}` : "",
    options.length > 0 ? ` WITH (${options.join(", ")})` : "",
    view.tablespace ? ` TABLESPACE ${quote(view.tablespace)}` : "",
    ` AS (${view.definition})${view.withNoData ? " WITH NO DATA" : ""};`,
  ].join("");
}

/** Keywords that PostgreSQL accepts in place of a role name. */
const keyRoles = new Set(["current_user", "current_role", "session_user", "public"]);

/** Always qualified with the schema. */
const inSchema = ({ schema, name }: { schema?: string; name: string }) =>
  `${quote(schema || "public")}.${quote(name)}`;

const list = (names: readonly string[]) => `(${names.map(quote).join(",")})`;

const snakeCase = (key: string) => key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

function columnOf(table: Table, column: Column): string {
  const { name, primaryKey, notNull, default: value, generated, identity } = column;
  return [
    `${quote(name)} ${typeName(column)}`,
    primaryKey ? " PRIMARY KEY" : "",
    value === undefined ? "" : ` DEFAULT ${value}`,
    generated ? ` GENERATED ALWAYS AS (${generated.as}) STORED` : "",
    // An identity column is implicitly NOT NULL.
    notNull && !identity ? " NOT NULL" : "",
    identity ? ` ${identityOf(table, identity)}` : "",
  ].join("");
}

const primaryKeyOf = ({ name, columns }: PrimaryKey) =>
  `CONSTRAINT ${quote(name)} PRIMARY KEY${list(columns)}`;

const uniqueOf = ({ name, nullsNotDistinct, columns }: Unique) =>
  `CONSTRAINT ${quote(name)} UNIQUE${nullsNotDistinct ? " NULLS NOT DISTINCT" : ""}${list(columns)}`;

const checkOf = ({ name, value }: Table["checkConstraints"][string]) =>
  `CONSTRAINT ${quote(name)} CHECK (${value})`;
