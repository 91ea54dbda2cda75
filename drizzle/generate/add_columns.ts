import { impossible, type Plan } from "./compare.ts";
import { displayName, mentions, qualified, quote, tableKey } from "./names.ts";
import { type Column, primaryKeyOf, type Table } from "./snapshot.ts";
import { isSerial } from "./types.ts";
import type { Walk } from "./walk.ts";
import type { Step } from "./write.ts";

/** Adds new columns, those generated from others last. */
export async function addColumns(walk: Walk, plan: Plan): Promise<void> {
  const columns = Object.values(plan.tables).flatMap(({ after, added, remade }) =>
    Object.values(after.columns)
      .filter(({ name }) => added.includes(name) || remade.includes(name))
      .map((column) => ({ table: after, column })),
  );
  for (const isGenerated of [false, true]) {
    const own = columns.filter(({ column }) => Boolean(column.generated) === isGenerated);
    const additions = own.map(({ table, column }) => ({ table, ...addition(plan, table, column) }));
    const find = (key: string, name: string) =>
      additions.find((it) => tableKey(it.table) === key && it.column.name === name);
    await walk.to(
      (at) => {
        for (const { table, column } of additions) at.tables[tableKey(table)]!.columns[column.name] = column;
      },
      ({ table, name }) => ({ look: find(table, name)?.look ?? [] }),
    );
    walk.say(
      additions.flatMap(({ after = [] }) => after),
      (at) => {
        for (const { table, column } of own) at.tables[tableKey(table)]!.columns[column.name] = column;
      },
    );
  }
}

interface Addition {
  column: Column;
  look?: string[];
  after?: Step[];
}

function addition(plan: Plan, table: Table, column: Column): Addition {
  // If the values of a generated column's source are gone, so are its own.
  const isLost = plan.tables[tableKey(table)]!.added.some((name) => mentions(column.generated?.as, name));
  if (plan.way === "undo" && (!hasOwnValues(column) || isLost)) return bringBack(plan, table, column);
  const { name } = column;
  const place = displayName(table);
  if (hasOwnValues(column)) return { column };
  if (column.default === undefined) {
    const look = `fails while ${place} has rows: give ${name} a default, or add it without NOT NULL, fill it, and SET NOT NULL`;
    return { column, look: column.notNull ? [look] : [] };
  }
  return { column };
}

/** Whether every row gets a distinct value, so that neither NOT NULL nor a key can be violated. */
function hasOwnValues(column: Column): boolean {
  const isRandom = /\b(gen_random_uuid|uuidv[47]|uuid_generate_v\w+|nextval)\s*\(/i.test(
    column.default ?? "",
  );
  return isRandom || column.generated !== undefined || column.identity !== undefined || isSerial(column);
}

/**
 * Restores a column that up dropped, whose values are gone. Existing rows get its default, or NULL if a default would
 * violate a key. NOT NULL is restored if no row violates it, as in an empty table.
 */
function bringBack(plan: Plan, table: Table, column: Column): Addition {
  const { name, default: value, ...rest } = column;
  const place = displayName(table, name);
  const isKey = isAloneUnique(table, name) || isReference(table, name);
  if (primaryKeyOf(table)?.columns.includes(name) && (value === undefined || isKey))
    throw impossible(plan, `the values of ${place} are gone, and the primary key needs them`);
  const breaksUnique = Object.values(table.uniqueConstraints).find(
    (unique) => unique.nullsNotDistinct && unique.columns.includes(name),
  );
  if (breaksUnique)
    throw impossible(
      plan,
      `the values of ${place} are gone, and ${breaksUnique.name} allows only one row without a value`,
    );
  const { notNull } = column;
  if (!isKey && !(value === undefined && notNull)) return { column };
  const alter = `ALTER TABLE ${qualified(table)} ALTER COLUMN ${quote(name)}`;
  return {
    column: { ...rest, name, notNull: false },
    look: [
      `the values of ${place} are gone, existing rows get NULL${notNull ? ": fill them, then SET NOT NULL" : ""}`,
    ],
    after: [
      ...(value === undefined ? [] : [{ sql: `${alter} SET DEFAULT ${value};` }]),
      ...(notNull ? [{ sql: notNullIfPossible(table, name, alter) }] : []),
    ],
  };
}

function notNullIfPossible(table: Table, name: string, alter: string): string {
  return `DO $svc$
BEGIN
  IF NOT EXISTS (SELECT FROM ${qualified(table)} WHERE ${quote(name)} IS NULL) THEN
    ${alter} SET NOT NULL;
  END IF;
END $svc$;`;
}

/** Whether two rows with the same value in this column alone, or in one generated from it, might violate a key. */
function isAloneUnique(table: Table, name: string): boolean {
  const made = Object.values(table.columns).filter(({ generated }) => mentions(generated?.as, name));
  const names = [name, ...made.map((column) => column.name)];
  const primary = primaryKeyOf(table)?.columns;
  const sets = [
    ...Object.values(table.uniqueConstraints).map(({ columns }) => columns),
    ...Object.values(table.indexes)
      .filter((index) => index.isUnique)
      .map((index) => index.columns.map(({ expression }) => expression)),
    ...(primary?.length === 1 ? [primary] : []),
  ];
  return sets.some((columns) => columns.some((column) => names.some((it) => mentions(column, it))));
}

function isReference(table: Table, name: string): boolean {
  return Object.values(table.foreignKeys).some(({ columnsFrom }) => columnsFrom.includes(name));
}
