import { isDeepStrictEqual } from "node:util";
import { givenName, mentions, tableKey } from "./names.ts";
import type { Column, EnumType, ForeignKey, Index, PrimaryKey, Schema, Table, View } from "./snapshot.ts";
import { isSerial, valueType } from "./types.ts";
import { compareViews, standingOrder } from "./views.ts";

/** The differences between two schemas, by name. Anything changed counts as both gone and made, except columns. */
export interface Changes {
  goneTables: Table[];
  madeTables: Table[];
  tables: TableChanges[];
  /** Enums whose new values cannot be reached with ADD VALUE, so that the type is recreated. */
  remadeEnums: EnumType[];
  /** Foreign keys to drop and to create, on tables that remain or are dropped. */
  goneKeys: { table: Table; key: ForeignKey }[];
  madeKeys: { table: Table; key: ForeignKey }[];
  goneViews: View[];
  madeViews: View[];
}

/** The names of what is dropped and what is created. What is replaced is in both. */
interface Replaced {
  gone: string[];
  made: string[];
}

/** A table in both schemas. */
export interface TableChanges {
  before: Table;
  after: Table;
  gone: string[];
  made: string[];
  /** Generated columns that must be dropped and added again. */
  remade: string[];
  /** Columns that change their type, including those of a recreated enum. */
  retyped: string[];
  /** All of these, except the new ones: what uses them has to be dropped before. */
  disturbed: string[];
  indexes: Replaced;
  uniques: Replaced;
  checks: Replaced;
  policies: Replaced;
  gonePrimaryKey?: PrimaryKey;
  madePrimaryKey?: PrimaryKey;
}

export function primaryKeyOf(table: Table): PrimaryKey | undefined {
  const [composite] = Object.values(table.compositePrimaryKeys);
  if (composite) return composite;
  const columns = Object.values(table.columns).filter((column) => column.primaryKey);
  if (columns.length === 0) return undefined;
  return { name: givenName(table.name, "", "pkey"), columns: columns.map(({ name }) => name) };
}

/** PostgreSQL's view: serial, identity and primary key columns are NOT NULL, whatever the snapshot says. */
export function isNotNull(table: Table, column: Column): boolean {
  const inKey = primaryKeyOf(table)?.columns.includes(column.name);
  return column.notNull || inKey === true || column.identity !== undefined || isSerial(column);
}

/** The enum that is the column's type, or its element type. */
export function enumKeyOf(column: Column): string | undefined {
  if (!column.typeSchema) return undefined;
  return tableKey({ schema: column.typeSchema, name: column.type.replace(/(\[\d*\])+$/, "") });
}

/** `renamed`: names of the tables in which a column was renamed. */
export function compare(before: Schema, after: Schema, renamed: readonly string[] = []): Changes {
  const remadeEnums = Object.entries(after.enums)
    .filter(([key, type]) => before.enums[key] && mustRemake(before, after, key, before.enums[key], type))
    .map(([, type]) => type);
  const tables = Object.entries(after.tables)
    .filter(([key]) => before.tables[key])
    .map(([key, table]) => compareTable(before.tables[key]!, table, remadeEnums));
  const changes: Changes = {
    goneTables: droppingOrder(missing(before.tables, after.tables)),
    madeTables: missing(after.tables, before.tables),
    tables,
    remadeEnums,
    goneKeys: [],
    madeKeys: [],
    goneViews: [],
    madeViews: [],
  };
  compareKeys(before, after, changes);
  compareViews(before, after, changes, renamed);
  return changes;
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

/** A value added by ALTER TYPE cannot be used in the same transaction. */
function mustRemake(before: Schema, after: Schema, key: string, had: EnumType, type: EnumType): boolean {
  if (!isSubsequence(had.values, type.values)) return true;
  const added = type.values.filter((value) => !had.values.includes(value));
  if (added.length === 0) return false;
  const isUsed = (text: string | undefined) => added.some((value) => usesValue(text, value));
  for (const [name, table] of Object.entries(after.tables)) {
    const columns = Object.values(table.columns).filter((column) => enumKeyOf(column) === key);
    if (columns.length === 0) continue;
    const texts = [
      ...columns.map((column) => column.default),
      ...Object.values(table.columns).map((column) => column.generated?.as),
      ...Object.values(table.checkConstraints).map((check) => check.value),
      ...Object.values(table.indexes).flatMap((index) => [
        index.where,
        ...index.columns.map((it) => it.expression),
      ]),
      ...Object.values(table.policies).flatMap((policy) => [policy.using, policy.withCheck]),
    ];
    if (texts.some(isUsed)) return true;
    const old = before.tables[name]?.columns;
    // Rows of a column that changes to this type may contain the new value.
    if (old && columns.some(({ name }) => old[name] && enumKeyOf(old[name]) !== key)) return true;
  }
  return Object.values(after.views).some((view) => view.materialized && isUsed(view.definition));
}

function usesValue(sql: string | undefined, value: string): boolean {
  const strings = [...(sql ?? "").matchAll(/'((?:[^']|'')*)'/g)].map(([, text = ""]) =>
    text.replaceAll("''", "'"),
  );
  return strings.some((text) => text === value || (text.startsWith("{") && text.includes(value)));
}

function compareTable(before: Table, after: Table, remadeEnums: readonly EnumType[]): TableChanges {
  const gone = missing(before.columns, after.columns).map(({ name }) => name);
  const made = missing(after.columns, before.columns).map(({ name }) => name);
  const kept = Object.keys(after.columns).filter((name) => before.columns[name]);
  const isRemade = (column: Column) => remadeEnums.some((type) => enumKeyOf(column) === tableKey(type));
  const retyped = kept.filter((name) => {
    const [old, now] = [before.columns[name]!, after.columns[name]!];
    return valueType(old) !== valueType(now) || isRemade(now) || isRemade(old);
  });
  const remade = kept.filter((name) => {
    const [old, now] = [before.columns[name]!, after.columns[name]!];
    if (!now.generated) return false;
    // PostgreSQL cannot alter a column that a generated column depends on.
    const isDisturbed = [...gone, ...retyped].some((other) => mentions(old.generated?.as, other));
    return isDisturbed || retyped.includes(name) || !isDeepStrictEqual(old.generated, now.generated);
  });
  const stillRetyped = retyped.filter((name) => !remade.includes(name));
  const disturbed = [...gone, ...remade, ...stillRetyped];
  const touches = (...texts: (string | undefined)[]) =>
    disturbed.some((name) => texts.some((text) => mentions(text, name)));
  const usesIndex = (index: Index) =>
    touches(index.where) ||
    index.columns.some(({ isExpression, expression }) =>
      isExpression ? touches(expression) : disturbed.includes(expression),
    );
  const isReplaced = (name: string) => gone.includes(name) || remade.includes(name);
  const indexes = replaced(before.indexes, after.indexes, usesIndex, sameIndex);
  const uniques = replaced(before.uniqueConstraints, after.uniqueConstraints, ({ columns }) =>
    columns.some(isReplaced),
  );
  const checks = replaced(before.checkConstraints, after.checkConstraints, ({ value }) => touches(value));
  const policies = replaced(before.policies, after.policies, ({ using, withCheck }) =>
    touches(using, withCheck),
  );
  const [oldKey, newKey] = [primaryKeyOf(before), primaryKeyOf(after)];
  const keyStays = isDeepStrictEqual(oldKey, newKey) && !oldKey?.columns.some(isReplaced);
  return {
    before,
    after,
    gone,
    made,
    remade,
    retyped: stillRetyped,
    disturbed,
    indexes,
    uniques,
    checks,
    policies,
    ...(!keyStays && oldKey ? { gonePrimaryKey: oldKey } : {}),
    ...(!keyStays && newKey ? { madePrimaryKey: newKey } : {}),
  };
}

function replaced<T>(
  had: Record<string, T>,
  has: Record<string, T>,
  isTouched: (thing: T) => boolean,
  isSame: (a: T, b: T | undefined) => boolean = isDeepStrictEqual,
): Replaced {
  const gone = Object.keys(had).filter((name) => !isSame(had[name]!, has[name]) || isTouched(had[name]!));
  const made = Object.keys(has).filter((name) => !(name in had) || gone.includes(name));
  return { gone, made };
}

/** CONCURRENTLY is about how an index is built, not about its definition. */
function sameIndex({ concurrently: _, ...a }: Index, b: Index | undefined): boolean {
  return b !== undefined && isDeepStrictEqual({ ...a, concurrently: b.concurrently }, b);
}

/** Referencing tables first, so that few foreign keys have to be dropped separately. */
function droppingOrder(tables: readonly Table[]): Table[] {
  const refersTo = (table: Table, other: Table) =>
    table !== other &&
    Object.values(table.foreignKeys).some(
      ({ schemaTo, tableTo }) => tableKey({ schema: schemaTo, name: tableTo }) === tableKey(other),
    );
  return standingOrder(tables, refersTo).toReversed();
}

function compareKeys(before: Schema, after: Schema, changes: Changes): void {
  const changesOf = new Map(changes.tables.map((table) => [tableKey(table.after), table]));
  const dropOrder = changes.goneTables.map(tableKey);
  const same = (a: string[], b: string[]) => isDeepStrictEqual(a.toSorted(), b.toSorted());
  const loses = (key: ForeignKey) => {
    const target = changesOf.get(tableKey({ schema: key.schemaTo, name: key.tableTo }));
    if (!target) return false;
    const { columnsTo } = key;
    const { before, gonePrimaryKey, uniques, indexes } = target;
    const keys = [
      ...uniques.gone.map((name) => before.uniqueConstraints[name]!.columns),
      ...(gonePrimaryKey ? [gonePrimaryKey.columns] : []),
      ...indexes.gone
        .map((name) => before.indexes[name]!)
        .filter(({ isUnique }) => isUnique)
        .map(({ columns }) => columns.map(({ expression }) => expression)),
    ];
    return (
      columnsTo.some((name) => target.disturbed.includes(name)) ||
      keys.some((columns) => same(columns, columnsTo))
    );
  };
  for (const [name, table] of Object.entries(before.tables)) {
    const own = changesOf.get(name);
    for (const key of Object.values(table.foreignKeys)) {
      const target = tableKey({ schema: key.schemaTo, name: key.tableTo });
      const stays =
        own &&
        isDeepStrictEqual(key, own.after.foreignKeys[key.name]) &&
        !key.columnsFrom.some((column) => own.disturbed.includes(column)) &&
        !dropOrder.includes(target) &&
        !loses(key);
      // A dropped table's keys go with it, unless they block an earlier drop.
      const isInTheWay = dropOrder.includes(target) && dropOrder.indexOf(target) < dropOrder.indexOf(name);
      const goesAlone = own === undefined && !isInTheWay && !loses(key);
      if (!stays && !goesAlone) changes.goneKeys.push({ table, key });
    }
  }
  const dropped = new Set(changes.goneKeys.map(({ table, key }) => `${tableKey(table)} ${key.name}`));
  for (const [name, table] of Object.entries(after.tables)) {
    for (const key of Object.values(table.foreignKeys)) {
      const isNew = !before.tables[name]?.foreignKeys[key.name] || dropped.has(`${name} ${key.name}`);
      if (isNew) changes.madeKeys.push({ table, key });
    }
  }
}
