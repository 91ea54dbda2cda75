import { isDeepStrictEqual } from "node:util";
import { InvalidInput } from "../../platform/errors.ts";
import { literal, mentions, tableKey } from "./names.ts";
import type { Column, EnumType, ForeignKey, Index, Schema, Table } from "./snapshot.ts";
import { valueType } from "./types.ts";
import { droppedViews, standingOrder } from "./views.ts";

/** One direction of a revision, and what has to be dropped on the way. What is replaced is dropped too. */
export interface Plan {
  before: Schema;
  after: Schema;
  /** "do" for up; "undo" for down, which finds rows whose values up has discarded. */
  way: "do" | "undo";
  /** Referencing tables first. */
  droppedTables: Table[];
  /** The tables in both schemas, by key. */
  tables: Record<string, TableChanges>;
  /** Enums whose new values cannot be reached with ADD VALUE, so that the type is recreated. */
  remadeEnums: EnumType[];
  droppedKeys: { table: Table; key: ForeignKey }[];
  droppedViews: string[];
}

/** The names of what is dropped from a table that stays. */
export interface TableChanges {
  before: Table;
  after: Table;
  dropped: string[];
  added: string[];
  /** Generated columns that must be dropped and added again. */
  remade: string[];
  /** Columns that change their type, including those of a recreated enum. */
  retyped: string[];
  /** Dropped, remade or retyped: what uses them has to be dropped before. */
  disturbed: string[];
  indexes: string[];
  uniqueConstraints: string[];
  checkConstraints: string[];
  policies: string[];
  compositePrimaryKeys: string[];
}

/** Down cannot be generated. */
export class Irreversible extends Error {}

/** A change that cannot be generated is an error in up, and makes down irreversible. */
export function impossible({ way }: Plan, why: string): Error {
  if (way === "undo") return new Irreversible(why);
  return new InvalidInput("schema", `${why}: write the revision by hand (svc database revision -m TEXT)`);
}

/** The enum that is the column's type, or its element type. */
export function enumKeyOf(column: Column): string | undefined {
  if (!column.typeSchema) return undefined;
  return tableKey({ schema: column.typeSchema, name: column.type.replace(/(\[\d*\])+$/, "") });
}

/** `renamed`: names of the tables in which a column was renamed. */
export function compare(
  before: Schema,
  after: Schema,
  way: Plan["way"],
  renamed: readonly string[] = [],
): Plan {
  const remadeEnums = Object.entries(after.enums)
    .filter(([key, type]) => before.enums[key] && mustRemake(before, after, key, before.enums[key], type))
    .map(([, type]) => type);
  const tables = Object.fromEntries(
    Object.entries(after.tables)
      .filter(([key]) => before.tables[key])
      .map(([key, table]) => [key, compareTable(before.tables[key]!, table, remadeEnums)]),
  );
  const droppedTables = droppingOrder(missing(before.tables, after.tables));
  const plan: Plan = {
    before,
    after,
    way,
    droppedTables,
    tables,
    remadeEnums,
    droppedKeys: [],
    droppedViews: [],
  };
  plan.droppedKeys = droppedKeys(plan);
  plan.droppedViews = droppedViews(plan, renamed);
  return plan;
}

export function missing<T>(from: Record<string, T>, others: Record<string, T>): T[] {
  return Object.entries(from)
    .filter(([key]) => !Object.hasOwn(others, key))
    .map(([, thing]) => thing);
}

/** Whether `had` becomes `values` by adding only: PostgreSQL neither removes nor moves values. */
export function isSubsequence(had: readonly string[], values: readonly string[]): boolean {
  let at = 0;
  for (const value of values) if (value === had[at]) at += 1;
  return at === had.length;
}

/** A value added by ALTER TYPE cannot be used in the same transaction. Errs on the side of a new type. */
function mustRemake(before: Schema, after: Schema, key: string, had: EnumType, type: EnumType): boolean {
  if (!isSubsequence(had.values, type.values)) return true;
  const added = type.values.filter((value) => !had.values.includes(value));
  if (added.length === 0) return false;
  const users = Object.entries(after.tables).filter(([, table]) =>
    Object.values(table.columns).some((column) => enumKeyOf(column) === key),
  );
  const stored = Object.values(after.views).filter(({ materialized }) => materialized);
  const sql = stringsIn([users, stored]).flatMap((text) => text.match(/'(?:[^']|'')*'/g) ?? []);
  const isUsed = (value: string) =>
    sql.some(
      (text) =>
        text === literal(value) || (text.startsWith("'{") && text.includes(literal(value).slice(1, -1))),
    );
  // Rows of a column that changes to this type may contain the new value.
  const isEntered = users.some(([name, table]) =>
    Object.values(before.tables[name]?.columns ?? {}).some((old) => {
      const now = table.columns[old.name];
      return now && enumKeyOf(now) === key && enumKeyOf(old) !== key;
    }),
  );
  return isEntered || added.some(isUsed);
}

function stringsIn(value: unknown): string[] {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(stringsIn) : [];
}

function compareTable(before: Table, after: Table, remadeEnums: readonly EnumType[]): TableChanges {
  const dropped = missing(before.columns, after.columns).map(({ name }) => name);
  const added = missing(after.columns, before.columns).map(({ name }) => name);
  const kept = Object.keys(after.columns).filter((name) => before.columns[name]);
  const isRemade = (column: Column) => remadeEnums.some((type) => enumKeyOf(column) === tableKey(type));
  const changesType = kept.filter((name) => {
    const [old, now] = [before.columns[name]!, after.columns[name]!];
    return valueType(old) !== valueType(now) || isRemade(now) || isRemade(old);
  });
  const remade = kept.filter((name) => {
    const [old, now] = [before.columns[name]!, after.columns[name]!];
    if (!now.generated) return false;
    // PostgreSQL cannot alter a column that a generated column depends on.
    const isDisturbed = [...dropped, ...changesType].some((other) => mentions(old.generated?.as, other));
    return isDisturbed || changesType.includes(name) || !isDeepStrictEqual(old.generated, now.generated);
  });
  const retyped = changesType.filter((name) => !remade.includes(name));
  const disturbed = [...dropped, ...remade, ...retyped];
  const touches = (...texts: (string | undefined)[]) =>
    disturbed.some((name) => texts.some((text) => mentions(text, name)));
  const usesIndex = (index: Index) =>
    touches(index.where) ||
    index.columns.some(({ isExpression, expression }) =>
      isExpression ? touches(expression) : disturbed.includes(expression),
    );
  const hasReplaced = ({ columns }: { columns: string[] }) =>
    columns.some((name) => dropped.includes(name) || remade.includes(name));
  return {
    before,
    after,
    dropped,
    added,
    remade,
    retyped,
    disturbed,
    indexes: replaced(before.indexes, after.indexes, usesIndex),
    uniqueConstraints: replaced(before.uniqueConstraints, after.uniqueConstraints, hasReplaced),
    checkConstraints: replaced(before.checkConstraints, after.checkConstraints, (it) => touches(it.value)),
    policies: replaced(before.policies, after.policies, (it) => touches(it.using, it.withCheck)),
    compositePrimaryKeys: replaced(before.compositePrimaryKeys, after.compositePrimaryKeys, hasReplaced),
  };
}

function replaced<T>(
  had: Record<string, T>,
  has: Record<string, T>,
  isTouched: (thing: T) => boolean,
): string[] {
  return Object.keys(had).filter((name) => !isDeepStrictEqual(had[name], has[name]) || isTouched(had[name]!));
}

/** CONCURRENTLY is about how an index is built, not about its definition. */
export function sameIndex(a: Index, b: Index | undefined): boolean {
  return isDeepStrictEqual({ ...a, concurrently: false }, b && { ...b, concurrently: false });
}

/** Referencing tables first, so that few foreign keys have to be dropped separately. */
function droppingOrder(tables: readonly Table[]): Table[] {
  const refersTo = (table: Table, other: Table) =>
    table !== other && Object.values(table.foreignKeys).some((key) => targetOf(key) === tableKey(other));
  return standingOrder(tables, refersTo).toReversed();
}

export function targetOf({ schemaTo, tableTo }: ForeignKey): string {
  return tableKey({ schema: schemaTo, name: tableTo });
}

/** The foreign keys that are in the way. A dropped table's keys go with it, unless they block an earlier drop. */
function droppedKeys({ before, tables, droppedTables }: Plan): Plan["droppedKeys"] {
  const dropOrder = droppedTables.map(tableKey);
  return Object.entries(before.tables).flatMap(([name, table]) => {
    const own = tables[name];
    const isInTheWay = (key: ForeignKey) => {
      const target = targetOf(key);
      if (losesTarget(key, tables[target])) return true;
      if (!own) return dropOrder.includes(target) && dropOrder.indexOf(target) < dropOrder.indexOf(name);
      return (
        !isDeepStrictEqual(key, own.after.foreignKeys[key.name]) ||
        key.columnsFrom.some((column) => own.disturbed.includes(column)) ||
        dropOrder.includes(target)
      );
    };
    return Object.values(table.foreignKeys)
      .filter(isInTheWay)
      .map((key) => ({ table, key }));
  });
}

/** Whether the columns that a foreign key refers to change, or lose what makes them unique. */
function losesTarget({ columnsTo }: ForeignKey, target: TableChanges | undefined): boolean {
  if (!target) return false;
  const { before, disturbed, compositePrimaryKeys, uniqueConstraints, indexes } = target;
  const keys = [
    ...compositePrimaryKeys.map((name) => before.compositePrimaryKeys[name]!.columns),
    ...uniqueConstraints.map((name) => before.uniqueConstraints[name]!.columns),
    ...indexes
      .filter((name) => before.indexes[name]!.isUnique)
      .map((name) => before.indexes[name]!.columns.map(({ expression }) => expression)),
  ];
  return (
    columnsTo.some((name) => disturbed.includes(name)) ||
    keys.some((columns) => isDeepStrictEqual(columns.toSorted(), columnsTo.toSorted()))
  );
}
