import { literal, qualified, quote } from "../generate/names.ts";
import { identityOf, optionsOf } from "../generate/sequences.ts";
import { type Column, type Index, readSnapshot, type Snapshot, type Table } from "../generate/snapshot.ts";
import { typeName } from "../generate/types.ts";
import { standingOrder, standsOn } from "../generate/views.ts";

/**
 * The SQL that creates a snapshot's schema in an empty database, to compare it with what the revisions create. It is written
 * without drizzle-kit, which an image lacks.
 */
export function snapshotSchema(snapshot: Snapshot): string {
  const { schemas, enums, sequences, tables, views } = readSnapshot(snapshot);
  const all = Object.values(tables);
  const statements = [
    ...Object.values(schemas).map((name) => `CREATE SCHEMA ${quote(name)}`),
    ...Object.values(enums).map(
      (type) => `CREATE TYPE ${qualified(type)} AS ENUM (${type.values.map(literal).join(", ")})`,
    ),
    ...Object.values(sequences).map(
      (it) => `CREATE SEQUENCE ${qualified(it)}${optionsOf(it)}${it.cycle ? " CYCLE" : ""}`,
    ),
    ...all.map((table) => {
      const columns = Object.values(table.columns).map((column) => columnOf(table, column));
      return `CREATE TABLE ${qualified(table)} (${columns.join(", ")})`;
    }),
    ...all.flatMap((table) =>
      constraintsOf(table).map((text) => `ALTER TABLE ${qualified(table)} ADD ${text}`),
    ),
    ...all.flatMap((table) => Object.values(table.indexes).map((index) => indexOf(table, index))),
    // The keys that they refer to exist by now.
    ...all.flatMap((table) =>
      referencesOf(table).map((text) => `ALTER TABLE ${qualified(table)} ADD ${text}`),
    ),
    ...all.flatMap(policiesOf),
    ...standingOrder(Object.values(views), standsOn).map((view) => {
      const kind = view.materialized ? "MATERIALIZED VIEW" : "VIEW";
      const options = Object.entries(view.with ?? {}).map(
        ([key, value]) => `${key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)} = ${value}`,
      );
      const settings = options.length > 0 ? ` WITH (${options.join(", ")})` : "";
      return `CREATE ${kind} ${qualified(view)}${settings} AS (${view.definition})`;
    }),
  ];
  return statements.map((statement) => `${statement};\n`).join("");
}

function columnOf(table: Table, column: Column): string {
  const { name, notNull, default: value, generated, identity } = column;
  return [
    `${quote(name)} ${typeName(column)}`,
    value === undefined ? "" : ` DEFAULT ${value}`,
    generated ? ` GENERATED ALWAYS AS (${generated.as}) STORED` : "",
    notNull ? " NOT NULL" : "",
    identity ? ` ${identityOf(table, identity)}` : "",
  ].join("");
}

const list = (names: readonly string[]) => `(${names.map(quote).join(", ")})`;

function constraintsOf(table: Table): string[] {
  return [
    ...Object.values(table.compositePrimaryKeys).map(({ name, columns }) => [
      name,
      `PRIMARY KEY ${list(columns)}`,
    ]),
    ...Object.values(table.uniqueConstraints).map(({ name, columns, nullsNotDistinct }) => [
      name,
      `UNIQUE${nullsNotDistinct ? " NULLS NOT DISTINCT" : ""} ${list(columns)}`,
    ]),
    ...Object.values(table.checkConstraints).map(({ name, value }) => [name, `CHECK (${value})`]),
  ].map(([name = "", text]) => `CONSTRAINT ${quote(name)} ${text}`);
}

function referencesOf(table: Table): string[] {
  return Object.values(table.foreignKeys).map(
    ({ name, columnsFrom, columnsTo, schemaTo, tableTo, ...on }) => {
      const target = `${qualified({ schema: schemaTo, name: tableTo })} ${list(columnsTo)}`;
      const actions = `${on.onDelete ? ` ON DELETE ${on.onDelete}` : ""}${on.onUpdate ? ` ON UPDATE ${on.onUpdate}` : ""}`;
      return `CONSTRAINT ${quote(name)} FOREIGN KEY ${list(columnsFrom)} REFERENCES ${target}${actions}`;
    },
  );
}

function indexOf(table: Table, { name, isUnique, method, columns, where, with: options }: Index): string {
  const parts = columns.map(({ expression, isExpression, opclass, asc, nulls }) => {
    const order = `${asc ? "" : " DESC"}${asc && nulls === "last" ? "" : ` NULLS ${nulls?.toUpperCase()}`}`;
    return `${isExpression ? expression : quote(expression)}${opclass ? ` ${opclass}` : ""}${order}`;
  });
  const settings = Object.entries(options).map(([key, value]) => `${key} = ${value}`);
  return [
    `CREATE ${isUnique ? "UNIQUE " : ""}INDEX ${quote(name)} ON ${qualified(table)} USING ${method} (${parts.join(", ")})`,
    settings.length > 0 ? ` WITH (${settings.join(", ")})` : "",
    where === undefined ? "" : ` WHERE ${where}`,
  ].join("");
}

function policiesOf(table: Table): string[] {
  const policies = Object.values(table.policies);
  const isOn = table.isRLSEnabled || policies.length > 0;
  return [
    ...(isOn ? [`ALTER TABLE ${qualified(table)} ENABLE ROW LEVEL SECURITY`] : []),
    ...policies.map((policy) => {
      const roles = policy.to.map((role) => (keyRoles.has(role) ? role : quote(role))).join(", ");
      const using = policy.using ? ` USING (${policy.using})` : "";
      const check = policy.withCheck ? ` WITH CHECK (${policy.withCheck})` : "";
      return `CREATE POLICY ${quote(policy.name)} ON ${qualified(table)} AS ${policy.as} FOR ${policy.for} TO ${roles}${using}${check}`;
    }),
  ];
}

/** Keywords that PostgreSQL accepts in place of a role name. */
const keyRoles = new Set(["current_user", "current_role", "session_user", "public"]);
