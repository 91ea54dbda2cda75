import { InvalidInput } from "../../platform/errors.ts";
import { enumKeyOf } from "./compare.ts";
import { givenName, literal, qualified, quote, renameIn, storedName, tableKey } from "./names.ts";
import type { Schema, Table } from "./snapshot.ts";
import { isSerial } from "./types.ts";
import type { Step } from "./write.ts";

export interface Rename {
  /** `incident` or `schema.incident`: the table or enum that contains the column or value, or the table to rename. */
  table: string;
  from: string;
  to: string;
  /** A value of an enum counts as a column: tables and enums cannot share a name. */
  kind: "column" | "table";
  /** The schema that a table moves to. */
  schema?: string;
}

interface Place {
  schema: string;
  name: string;
}

/**
 * Parses `table.old:new` or `schema.table.old:new` (a column, or an enum's value), `old:new` or `schema.old:schema.new` (a table, which may
 * move to another schema). A name with a dot or a colon is in double quotes.
 * @throws InvalidInput `rename`
 */
export function parseRename(text: string): Rename {
  const [source = [], target = [], ...more] = sidesOf(text);
  const isWhole = more.length === 0 && [...source, ...target].every((name) => name !== "");
  const [from = "", to = ""] = [source.at(-1), target.at(-1)];
  if (isWhole && target.length === 1 && source.length === 1) {
    return { table: formatName(source), from, to, kind: "table" };
  }
  if (isWhole && target.length === 2 && source.length >= 1 && source.length <= 2) {
    const schema = target[0]!;
    const isMove = schema !== (source.length === 2 ? source[0] : "public");
    return { table: formatName(source), from, to, kind: "table", ...(isMove ? { schema } : {}) };
  }
  if (isWhole && target.length === 1 && (source.length === 2 || source.length === 3)) {
    return { table: formatName(source.slice(0, -1)), from, to, kind: "column" };
  }
  throw new InvalidInput(
    "rename",
    `"${text}" is not a rename: write table.old:new for a column, enum.old:new for a value, old:new for a table (schema.old:schema.new outside public)`,
  );
}

/** Splits `a."b.c":d` into [["a", "b.c"], ["d"]]. */
function sidesOf(text: string): string[][] {
  const sides = [[""]];
  for (const [token, quoted] of text.matchAll(/(?<=^|[.:])\s*"((?:[^"]|"")+)"\s*(?=[.:]|$)|[.:]|[^.:]+/g)) {
    if (token === ":") sides.push([""]);
    else if (token === ".") sides.at(-1)!.push("");
    else sides.at(-1)!.splice(-1, 1, quoted?.replaceAll('""', '"') ?? token.trim());
  }
  return sides;
}

/** Formats a name in the syntax of `parseRename`. */
export function formatName(parts: readonly string[]): string {
  return parts.map((part) => (/[.:]|^\s*"|^\s|\s$/.test(part) ? quote(part) : part)).join(".");
}

function placeOf(table: string): Place {
  const [first = "", second] = sidesOf(table.replaceAll(":", "\u0000"))[0]!.map((part) =>
    part.replaceAll("\u0000", ":"),
  );
  return second === undefined ? { schema: "public", name: first } : { schema: first, name: second };
}

const keyOf = (table: string) => tableKey(placeOf(table));

/** The table's place after its rename. */
function targetOf({ table, to, schema }: Rename): Place {
  return { schema: schema ?? placeOf(table).schema, name: to };
}

function formatPlace({ schema, name }: Place): string {
  return formatName(schema === "public" ? [name] : [schema, name]);
}

/** The reverse renames, last first. */
export function reverseRenames(renames: readonly Rename[]): Rename[] {
  const tables = renames.filter(({ kind }) => kind === "table");
  const now = (table: string) => {
    const renamed = tables.find((rename) => keyOf(rename.table) === keyOf(table));
    return renamed ? formatPlace(targetOf(renamed)) : table;
  };
  return renames
    .map(({ table, from, to, kind, schema }) => ({
      table: now(table),
      from: to,
      to: from,
      kind,
      ...(schema === undefined ? {} : { schema: placeOf(table).schema }),
    }))
    .toReversed();
}

/** The key of a table before the renames. */
export function nameBefore(key: string, renames: readonly Rename[]): string {
  const renamed = renames.find((it) => it.kind === "table" && tableKey(targetOf(it)) === key);
  return renamed ? keyOf(renamed.table) : key;
}

/** The old and new names of tables with a renamed column. */
export function tablesOfRenamedColumns(renames: readonly Rename[]): string[] {
  return renames
    .filter(({ kind }) => kind === "column")
    .flatMap(({ table }) => {
      const moved = renames.find((other) => other.kind === "table" && keyOf(other.table) === keyOf(table));
      return [placeOf(table).name, ...(moved ? [moved.to] : [])];
    });
}

/**
 * Applies the renames to `before` and returns the statements that do so in the database: for tables, columns and values
 * of enums, and for objects that Drizzle and PostgreSQL named after them.
 * @throws InvalidInput `rename` when they do not match the two schemas
 */
export function applyRenames(before: Schema, after: Schema, renames: readonly Rename[]): Step[] {
  const steps: Step[] = [];
  const order = renames.toSorted((a, b) => Number(a.kind === "column") - Number(b.kind === "column"));
  const touched = new Set<string>();
  for (const rename of order) {
    const key = keyOf(rename.table);
    if (rename.kind === "table") {
      steps.push(...renameTable(before, after, rename));
      touched.add(tableKey(targetOf(rename)));
    } else if (before.enums[key]) {
      steps.push(renameValue(before, after, rename));
    } else {
      // The table may be given by its old or its new name.
      const moved = renames.find((other) => other.kind === "table" && keyOf(other.table) === key);
      const now = moved ? tableKey(targetOf(moved)) : key;
      steps.push(...renameColumn(before, after, now, rename));
      touched.add(now);
    }
  }
  for (const [key, table] of Object.entries(before.tables)) {
    const target = after.tables[key];
    if (target) steps.push(...renameDerived(table, target, touched, key));
  }
  return steps;
}

/** PostgreSQL stores a value's number, so that everything which uses the value follows. */
function renameValue(before: Schema, after: Schema, { table, from, to }: Rename): Step {
  const key = keyOf(table);
  const [type, target] = [before.enums[key]!, after.enums[key]];
  const refuse = (why: string) =>
    new InvalidInput("rename", `Value ${from} of ${table} cannot be renamed to ${to}: ${why}`);
  if (!type.values.includes(from)) throw refuse(`value ${from} did not exist`);
  if (!target?.values.includes(to)) throw refuse(`value ${to} does not exist now`);
  if (target.values.includes(from)) throw refuse(`value ${from} still exists`);
  if (type.values.includes(to)) throw refuse(`value ${to} already existed`);
  type.values = type.values.map((value) => (value === from ? to : value));
  for (const column of Object.values(before.tables).flatMap((it) => Object.values(it.columns))) {
    if (enumKeyOf(column) === key) column.default = column.default?.replace(literal(from), () => literal(to));
  }
  return { sql: `ALTER TYPE ${qualified(type)} RENAME VALUE ${literal(from)} TO ${literal(to)};` };
}

function renameTable(before: Schema, after: Schema, rename: Rename): Step[] {
  const steps: Step[] = [];
  const key = keyOf(rename.table);
  const place = targetOf(rename);
  const target = tableKey(place);
  const table = before.tables[key];
  const refuse = (why: string) =>
    new InvalidInput("rename", `Table ${rename.table} cannot be renamed to ${rename.to}: ${why}`);
  if (!table) throw refuse(`table ${rename.table} did not exist`);
  if (after.tables[key]) throw refuse(`table ${rename.table} still exists`);
  if (!after.tables[target]) throw refuse(`table ${rename.to} does not exist now`);
  if (before.tables[target]) throw refuse(`table ${rename.to} already existed`);
  const schema = place.schema === "public" ? "" : place.schema;
  const old = table.schema || "public";
  if (schema !== table.schema) {
    if (schema && !before.schemas[schema]) {
      steps.push({ sql: `CREATE SCHEMA ${quote(schema)};` });
      before.schemas[schema] = schema;
    }
    steps.push({ sql: `ALTER TABLE ${qualified(table)} SET SCHEMA ${quote(place.schema)};` });
    table.schema = schema;
  }
  if (rename.to !== table.name)
    steps.push({ sql: `ALTER TABLE ${qualified(table)} RENAME TO ${quote(rename.to)};` });
  for (const { name } of Object.values(table.columns).filter(isSerial)) {
    const [from, to] = [givenName(table.name, name, "seq"), givenName(rename.to, name, "seq")];
    steps.push(...renameSequence(table, from, to));
  }
  for (const other of Object.values(before.tables)) {
    for (const key of Object.values(other.foreignKeys)) {
      if (key.tableTo === table.name && (key.schemaTo || "public") === old) {
        key.tableTo = rename.to;
        if (place.schema !== old) key.schemaTo = place.schema;
      }
      if (other === table) key.tableFrom = rename.to;
    }
  }
  changeTexts(table, table.name, rename.to);
  table.name = rename.to;
  before.tables = replaceKey(before.tables, key, target);
  return steps;
}

function renameColumn(before: Schema, after: Schema, key: string, rename: Rename): Step[] {
  const { from, to } = rename;
  const [table, target] = [before.tables[key], after.tables[key]];
  const refuse = (why: string) =>
    new InvalidInput("rename", `Column ${rename.table}.${from} cannot be renamed to ${to}: ${why}`);
  if (!table || !target) throw refuse(`table ${rename.table} does not exist before and after`);
  if (!table.columns[from]) throw refuse(`column ${from} did not exist`);
  if (target.columns[from]) throw refuse(`column ${from} still exists`);
  if (!target.columns[to]) throw refuse(`column ${to} does not exist now`);
  if (table.columns[to]) throw refuse(`column ${to} already existed`);
  const column = table.columns[from]!;
  column.name = to;
  table.columns = replaceKey(table.columns, from, to);
  const swap = (names: string[]) => names.map((name) => (name === from ? to : name));
  for (const unique of Object.values(table.uniqueConstraints)) unique.columns = swap(unique.columns);
  for (const primary of Object.values(table.compositePrimaryKeys)) primary.columns = swap(primary.columns);
  for (const index of Object.values(table.indexes)) {
    for (const part of index.columns) {
      if (!part.isExpression && part.expression === from) part.expression = to;
    }
  }
  for (const other of Object.values(before.tables)) {
    for (const reference of Object.values(other.foreignKeys)) {
      if (other === table) reference.columnsFrom = swap(reference.columnsFrom);
      const isTarget =
        reference.tableTo === table.name && (reference.schemaTo || "public") === (table.schema || "public");
      if (isTarget) reference.columnsTo = swap(reference.columnsTo);
    }
  }
  changeTexts(table, from, to);
  const sql = `ALTER TABLE ${qualified(table)} RENAME COLUMN ${quote(from)} TO ${quote(to)};`;
  if (!isSerial(column)) return [{ sql }];
  const [own, renamed] = [from, to].map((name) => givenName(table.name, name, "seq"));
  return [{ sql }, ...renameSequence(table, own!, renamed!)];
}

/** PostgreSQL updates all of these itself; only the texts that we compare need changing. */
function changeTexts(table: Table, from: string, to: string): void {
  for (const check of Object.values(table.checkConstraints)) check.value = renameIn(check.value, from, to);
  for (const column of Object.values(table.columns)) {
    if (column.generated) column.generated.as = renameIn(column.generated.as, from, to);
  }
  for (const index of Object.values(table.indexes)) {
    if (index.where !== undefined) index.where = renameIn(index.where, from, to);
    for (const part of index.columns) {
      if (part.isExpression) part.expression = renameIn(part.expression, from, to);
    }
  }
}

/** Keys, indexes and sequences whose only change is a name derived from a table or column. */
function renameDerived(table: Table, target: Table, touched: ReadonlySet<string>, key: string): Step[] {
  const steps: Step[] = [];
  const isTouched = touched.has(key);
  const constraint = (from: string, to: string) =>
    steps.push({
      sql: `ALTER TABLE ${qualified(table)} RENAME CONSTRAINT ${quote(from)} TO ${quote(to)};`,
    });
  table.foreignKeys = matchNames(
    table.foreignKeys,
    target.foreignKeys,
    constraint,
    ({ tableTo, schemaTo }) => isTouched || touched.has(tableKey({ schema: schemaTo, name: tableTo })),
  );
  if (!isTouched) return steps;
  table.uniqueConstraints = matchNames(table.uniqueConstraints, target.uniqueConstraints, constraint);
  table.checkConstraints = matchNames(table.checkConstraints, target.checkConstraints, constraint);
  table.compositePrimaryKeys = matchNames(
    table.compositePrimaryKeys,
    target.compositePrimaryKeys,
    constraint,
  );
  table.indexes = matchNames(table.indexes, target.indexes, (from, to) => {
    const name = qualified({ schema: table.schema, name: from });
    steps.push({ sql: `ALTER INDEX ${name} RENAME TO ${quote(to)};` });
  });
  for (const [name, { identity }] of Object.entries(table.columns)) {
    const now = target.columns[name]?.identity;
    if (!identity || !now) continue;
    steps.push(...renameSequence(table, identity.name, now.name));
    identity.name = now.name;
  }
  return steps;
}

function renameSequence(table: Table, from: string, to: string): Step[] {
  if (from === to) return [];
  const name = qualified({ schema: table.schema, name: from });
  return [{ sql: `ALTER SEQUENCE ${name} RENAME TO ${quote(to)};` }];
}

function matchNames<T extends { name: string }>(
  had: Record<string, T>,
  has: Record<string, T>,
  rename: (from: string, to: string) => void,
  mayRename: (thing: T) => boolean = () => true,
): Record<string, T> {
  const likeness = (thing: T) => JSON.stringify(thing, (key, value) => (key === "name" ? undefined : value));
  let record = had;
  for (const thing of Object.values(had)) {
    if (has[thing.name] || !mayRename(thing)) continue;
    const twin = Object.values(has).find((it) => !record[it.name] && likeness(it) === likeness(thing));
    if (!twin) continue;
    if (storedName(thing.name) !== storedName(twin.name)) rename(thing.name, twin.name);
    record = replaceKey(record, thing.name, twin.name);
    thing.name = twin.name;
  }
  return record;
}

function replaceKey<T>(record: Record<string, T>, from: string, to: string): Record<string, T> {
  const entries = Object.entries(record).map(([key, value]) => [key === from ? to : key, value]);
  return Object.assign(Object.create(null), Object.fromEntries(entries));
}
