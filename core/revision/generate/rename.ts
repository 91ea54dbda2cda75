import { InvalidInput } from "../../errors.ts";
import { givenName, qualified, quote, renameIn, tableKey } from "./names.ts";
import type { Column, Schema, Table } from "./snapshot.ts";
import { isSerial } from "./types.ts";
import { type Statement, statement } from "./write.ts";

export interface Rename {
  /** `incident` or `schema.incident`: for a column the table it is in, for a table the same as `from`. */
  table: string;
  from: string;
  to: string;
  kind: "column" | "table";
}

/**
 * Reads `table.old:new` or `schema.table.old:new` (a column), `old:new` or `schema.old:schema.new` (a table).
 * @throws InvalidInput `rename`
 */
export function parseRename(text: string): Rename {
  const [left = "", right = "", ...more] = text.split(":").map((part) => part.trim());
  const source = left.split(".");
  const target = right.split(".");
  const isWhole = more.length === 0 && [...source, ...target].every((name) => name !== "");
  const from = source.at(-1)!;
  const to = target.at(-1)!;
  if (isWhole && target.length === 1 && source.length === 1) return { table: from, from, to, kind: "table" };
  if (isWhole && target.length === 2 && source.length === 2 && target[0] === source[0]) {
    return { table: left, from, to, kind: "table" };
  }
  if (isWhole && target.length === 1 && source.length <= 3) {
    return { table: source.slice(0, -1).join("."), from, to, kind: "column" };
  }
  throw new InvalidInput(
    "rename",
    `"${text}" is no rename: write table.old:new for a column, old:new for a table (schema.old:schema.new outside public)`,
  );
}

/** The renames that lead back, last first. */
export function reverseRenames(renames: readonly Rename[]): Rename[] {
  const schemaOf = (table: string) => table.split(".").slice(0, -1);
  const tables = renames.filter(({ kind }) => kind === "table");
  const now = (table: string) => {
    const renamed = tables.find((rename) => keyOf(rename.table) === keyOf(table));
    return renamed ? [...schemaOf(table), renamed.to].join(".") : table;
  };
  return renames
    .map(({ table, from, to, kind }) => ({ table: now(table), from: to, to: from, kind }))
    .toReversed();
}

/**
 * Gives `before` the names of `after` and returns the statements that do so in the database: tables and columns, and
 * what drizzle-kit and PostgreSQL named after them.
 * @throws InvalidInput `rename` when the two schemas do not bear it out
 */
export function applyRenames(before: Schema, after: Schema, renames: readonly Rename[]): Statement[] {
  const statements: Statement[] = [];
  const order = renames.toSorted((a, b) => Number(a.kind === "column") - Number(b.kind === "column"));
  const touched = new Set<string>();
  for (const rename of order) {
    const key = keyOf(rename.table);
    if (rename.kind === "table") {
      renameTable(before, after, rename, statements);
      touched.add(tableKey({ ...splitKey(key), name: rename.to }));
    } else {
      // The table may go by the name it had or the one it gets.
      const moved = renames.find((other) => other.kind === "table" && keyOf(other.table) === key);
      const now = moved ? tableKey({ ...splitKey(key), name: moved.to }) : key;
      renameColumn(before, after, now, rename, statements);
      touched.add(now);
    }
  }
  for (const [key, table] of Object.entries(before.tables)) {
    const target = after.tables[key];
    if (target) renameDerived(table, target, touched.has(key), touched, statements);
  }
  return statements;
}

const keyOf = (table: string) => (table.includes(".") ? table : `public.${table}`);

function splitKey(key: string): { schema: string; name: string } {
  const at = key.indexOf(".");
  return { schema: key.slice(0, at), name: key.slice(at + 1) };
}

function renameTable(before: Schema, after: Schema, rename: Rename, statements: Statement[]): void {
  const key = keyOf(rename.table);
  const target = tableKey({ ...splitKey(key), name: rename.to });
  const table = before.tables[key];
  const refuse = (why: string) =>
    new InvalidInput("rename", `Table ${rename.table} cannot be renamed to ${rename.to}: ${why}`);
  if (!table) throw refuse(`there was no table ${rename.table}`);
  if (after.tables[key]) throw refuse(`table ${rename.table} is still there`);
  if (!after.tables[target]) throw refuse(`there is no table ${rename.to} now`);
  if (before.tables[target]) throw refuse(`table ${rename.to} was there before`);
  statements.push(statement(`ALTER TABLE ${qualified(table)} RENAME TO ${quote(rename.to)};`));
  const pkey = Object.values(table.columns).some((column) => column.primaryKey);
  if (pkey) {
    const [from, to] = [givenName(table.name, "", "pkey"), givenName(rename.to, "", "pkey")];
    const place = qualified({ ...table, name: rename.to });
    statements.push(statement(`ALTER TABLE ${place} RENAME CONSTRAINT ${quote(from)} TO ${quote(to)};`));
  }
  for (const column of Object.values(table.columns).filter(isSerial)) {
    renameSequence(
      table,
      givenName(table.name, column.name, "seq"),
      givenName(rename.to, column.name, "seq"),
      statements,
    );
  }
  for (const other of Object.values(before.tables)) {
    for (const key of Object.values(other.foreignKeys)) {
      if (key.tableTo === table.name && (key.schemaTo || "public") === (table.schema || "public")) {
        key.tableTo = rename.to;
      }
      if (other === table) key.tableFrom = rename.to;
    }
  }
  changeTexts(table, table.name, rename.to);
  table.name = rename.to;
  before.tables = replaceKey(before.tables, key, target);
}

function renameColumn(
  before: Schema,
  after: Schema,
  key: string,
  rename: Rename,
  statements: Statement[],
): void {
  const { from, to } = rename;
  const [table, target] = [before.tables[key], after.tables[key]];
  const refuse = (why: string) =>
    new InvalidInput("rename", `Column ${rename.table}.${from} cannot be renamed to ${to}: ${why}`);
  if (!table || !target) throw refuse(`table ${rename.table} is not there before and after`);
  if (!table.columns[from]) throw refuse(`there was no column ${from}`);
  if (target.columns[from]) throw refuse(`column ${from} is still there`);
  if (!target.columns[to]) throw refuse(`there is no column ${to} now`);
  if (table.columns[to]) throw refuse(`column ${to} was there before`);
  statements.push(statement(`ALTER TABLE ${qualified(table)} RENAME COLUMN ${quote(from)} TO ${quote(to)};`));
  const column = table.columns[from]!;
  if (isSerial(column)) {
    renameSequence(table, givenName(table.name, from, "seq"), givenName(table.name, to, "seq"), statements);
  }
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
}

/** PostgreSQL follows a rename in all of these by itself: only the texts that we compare have to. */
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

/** Keys, indexes and sequences that are as they were but for their name, which came from that of a table or column. */
function renameDerived(
  table: Table,
  target: Table,
  isTouched: boolean,
  touched: ReadonlySet<string>,
  statements: Statement[],
): void {
  const constraint = (from: string, to: string) =>
    statements.push(
      statement(`ALTER TABLE ${qualified(table)} RENAME CONSTRAINT ${quote(from)} TO ${quote(to)};`),
    );
  const pointsAt = ({ tableTo, schemaTo }: { tableTo: string; schemaTo?: string }) =>
    touched.has(tableKey({ schema: schemaTo, name: tableTo }));
  table.foreignKeys = matchNames(
    table.foreignKeys,
    target.foreignKeys,
    constraint,
    (key) => isTouched || pointsAt(key),
  );
  if (!isTouched) return;
  table.uniqueConstraints = matchNames(table.uniqueConstraints, target.uniqueConstraints, constraint);
  table.checkConstraints = matchNames(table.checkConstraints, target.checkConstraints, constraint);
  table.compositePrimaryKeys = matchNames(
    table.compositePrimaryKeys,
    target.compositePrimaryKeys,
    constraint,
  );
  table.indexes = matchNames(table.indexes, target.indexes, (from, to) => {
    const name = qualified({ schema: table.schema, name: from });
    statements.push(statement(`ALTER INDEX ${name} RENAME TO ${quote(to)};`));
  });
  for (const [name, column] of Object.entries(table.columns)) {
    const now: Column | undefined = target.columns[name];
    if (!column.identity || !now?.identity || column.identity.name === now.identity.name) continue;
    renameSequence(table, column.identity.name, now.identity.name, statements);
    column.identity.name = now.identity.name;
  }
}

function renameSequence(table: Table, from: string, to: string, statements: Statement[]): void {
  if (from === to) return;
  const name = qualified({ schema: table.schema, name: from });
  statements.push(statement(`ALTER SEQUENCE ${name} RENAME TO ${quote(to)};`));
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
    rename(thing.name, twin.name);
    record = replaceKey(record, thing.name, twin.name);
    thing.name = twin.name;
  }
  return record;
}

function replaceKey<T>(record: Record<string, T>, from: string, to: string): Record<string, T> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key === from ? to : key, value]));
}
