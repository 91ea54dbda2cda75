import { addColumn } from "./add.ts";
import { isNotNull, primaryKeyOf, type TableChanges } from "./compare.ts";
import { displayName, mentions, qualified, quote } from "./names.ts";
import { impossible, type Plan } from "./plan.ts";
import type { Column, Table } from "./snapshot.ts";
import { isSerial } from "./types.ts";
import type { Statement } from "./write.ts";

/** Adds a table's new columns, those generated from others last. */
export function addColumns(plan: Plan, changes: TableChanges): Statement[] {
  const { after: table } = changes;
  const names = Object.keys(table.columns).filter(
    (name) => changes.made.includes(name) || changes.remade.includes(name),
  );
  const columns = names.map((name) => table.columns[name]!);
  const order = columns.toSorted((a, b) => Number(Boolean(a.generated)) - Number(Boolean(b.generated)));
  const statements: Statement[] = [];
  for (const column of order) {
    // If the values of a generated column's source are gone, so are its own.
    const isLost = changes.made.some((name) => mentions(column.generated?.as, name));
    const isBack = plan.way === "undo" && (!hasOwnValues(column) || isLost);
    statements.push(...(isBack ? bringBack(plan, table, column) : addNew(table, column)));
  }
  return statements;
}

/** Whether every row gets a distinct value, so that neither NOT NULL nor a key can be violated. */
function hasOwnValues(column: Column): boolean {
  const isRandom = /\b(gen_random_uuid|uuidv[47]|uuid_generate_v\w+|nextval)\s*\(/i.test(
    column.default ?? "",
  );
  return isRandom || column.generated !== undefined || column.identity !== undefined || isSerial(column);
}

function addNew(table: Table, column: Column): Statement[] {
  const place = displayName(table);
  const look: string[] = [];
  if (!hasOwnValues(column)) {
    if (column.default === undefined && isNotNull(table, column)) {
      look.push(
        `fails while ${place} has rows: give ${column.name} a default, or add it without NOT NULL, fill it, and SET NOT NULL`,
      );
    } else if (column.default !== undefined && isAloneUnique(table, column.name)) {
      look.push(
        `every row of ${place} gets the same ${column.name}, which has to be unique: fails when there are two`,
      );
    } else if (column.default !== undefined && isReference(table, column.name)) {
      look.push(`every row of ${place} gets the same ${column.name}, which has to refer to something`);
    }
  }
  return [{ sql: render(table, column, isNotNull(table, column)), look }];
}

/**
 * Restores a column that up dropped, whose values are gone. Existing rows get its default, or NULL if a default would
 * violate a key. NOT NULL is restored if no row violates it, as in an empty table.
 */
function bringBack(plan: Plan, table: Table, column: Column): Statement[] {
  const place = displayName(table, column.name);
  const { name } = column;
  const primary = primaryKeyOf(table)?.columns.includes(name);
  const isKey = isAloneUnique(table, name) || isReference(table, name);
  const lacksDefault = column.default === undefined;
  if (primary && (lacksDefault || isKey)) {
    throw impossible(plan, `the values of ${place} are gone, and the primary key needs them`, "");
  }
  const breaksUnique = Object.values(table.uniqueConstraints).find(
    (unique) => unique.nullsNotDistinct && unique.columns.includes(name),
  );
  if (breaksUnique) {
    throw impossible(
      plan,
      `the values of ${place} are gone, and ${breaksUnique.name} allows only one row without a value`,
      "",
    );
  }
  const notNull = isNotNull(table, column);
  if (!isKey && !(lacksDefault && notNull)) return [render(table, column, notNull)];

  const { default: value, ...empty } = column;
  const alter = `ALTER TABLE ${qualified(table)} ALTER COLUMN ${quote(name)}`;
  const fill = notNull ? ": fill them, then SET NOT NULL" : "";
  const look = [`the values of ${place} are gone, existing rows get NULL${fill}`];
  return [
    { sql: render(table, empty, false), look },
    ...(value === undefined ? [] : [`${alter} SET DEFAULT ${value};`]),
    ...(notNull ? [notNullIfPossible(table, name)] : []),
  ];
}

function render(table: Table, column: Column, notNull: boolean): string {
  // The primary key is added separately, under its name.
  return addColumn(table, { ...column, primaryKey: false, notNull });
}

function notNullIfPossible(table: Table, name: string): string {
  return `DO $svc$
BEGIN
  IF NOT EXISTS (SELECT FROM ${qualified(table)} WHERE ${quote(name)} IS NULL) THEN
    ALTER TABLE ${qualified(table)} ALTER COLUMN ${quote(name)} SET NOT NULL;
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
