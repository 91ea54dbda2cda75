import {
  addCheck,
  addForeignKey,
  addPrimaryKey,
  addUnique,
  createEnum,
  createIndex,
  createPolicy,
  createSchema,
  createSequence,
  createTable,
  createView,
} from "./add.ts";
import { addColumns } from "./add_column.ts";
import { missing, type TableChanges } from "./compare.ts";
import { displayName, qualified, quote, tableKey } from "./names.ts";
import type { Plan } from "./plan.ts";
import type { ForeignKey, Table } from "./snapshot.ts";
import type { Statement } from "./write.ts";

/** Creates schemas, enums and sequences, which tables may depend on. */
export function createBases({ before, after }: Plan): Statement[] {
  return [
    ...missing(after.schemas, before.schemas).map(createSchema),
    ...missing(after.enums, before.enums).map(createEnum),
    ...missing(after.sequences, before.sequences).map(createSequence),
  ];
}

/** Creates tables with their constraints, columns, constraints of existing tables, indexes, foreign keys, views. */
export function createSteps(plan: Plan): Statement[] {
  const { changes } = plan;
  const statements: Statement[] = changes.madeTables.map(createTable);
  for (const table of changes.tables) statements.push(...addColumns(plan, table));
  for (const table of changes.tables) statements.push(...addConstraints(table));
  for (const table of changes.madeTables) {
    for (const index of Object.values(table.indexes)) {
      // The table is empty, so the lock delays no one.
      statements.push(createIndex(table, { ...index, concurrently: false }));
    }
  }
  for (const { table, key } of changes.madeKeys) statements.push(...foreignKeySteps(plan, table, key));
  statements.push(...addPolicies(plan));
  return [...statements, ...changes.madeViews.map(createView)];
}

function addConstraints(changes: TableChanges): Statement[] {
  const { before, after: table } = changes;
  const statements: Statement[] = [];
  const place = displayName(table);
  // A generated column gets new values, which no key has checked yet.
  const isRemade = (columns: readonly string[]) => columns.some((name) => changes.remade.includes(name));
  if (changes.madePrimaryKey) {
    const { name, columns } = changes.madePrimaryKey;
    const look = [
      `fails while two rows of ${place} have the same ${columns.join(", ")}, or one has no value`,
    ];
    statements.push({ sql: addPrimaryKey(table, { name, columns }), look });
  }
  for (const name of changes.uniques.made) {
    const unique = table.uniqueConstraints[name]!;
    const isNew =
      JSON.stringify(before.uniqueConstraints[name]) !== JSON.stringify(unique) || isRemade(unique.columns);
    const look = isNew ? [`fails while two rows of ${place} have the same ${unique.columns.join(", ")}`] : [];
    statements.push({ sql: addUnique(table, unique), look });
  }
  for (const name of changes.checks.made) {
    const check = table.checkConstraints[name]!;
    const look =
      before.checkConstraints[name]?.value === check.value ? [] : [`fails while a row of ${place} breaks it`];
    statements.push({ sql: addCheck(table, check), look });
  }
  for (const name of changes.indexes.made) {
    const index = table.indexes[name]!;
    const isNew =
      !before.indexes[index.name]?.isUnique || isRemade(index.columns.map(({ expression }) => expression));
    const look =
      index.isUnique && isNew ? [`fails while two rows of ${place} are the same in this index`] : [];
    // An index that is only rebuilt because its column changed locks a table that is locked already.
    const concurrently = index.concurrently && !before.indexes[index.name];
    statements.push({ sql: createIndex(table, { ...index, concurrently }), look });
  }
  return statements;
}

function foreignKeySteps(plan: Plan, table: Table, key: ForeignKey): Statement[] {
  const { before, changes, way } = plan;
  const sql = addForeignKey(table, key);
  const own = changes.tables.find((it) => it.after === table);
  const hasRows = own && !key.columnsFrom.some((name) => own.made.includes(name));
  if (!hasRows) return [sql];
  const targetKey = tableKey({ schema: key.schemaTo, name: key.tableTo });
  const target = changes.tables.find((it) => tableKey(it.after) === targetKey);
  const isEmptied = !target || key.columnsTo.some((name) => target.made.includes(name));
  const [from, to] = [displayName(table), displayName({ schema: key.schemaTo, name: key.tableTo })];
  if (way === "undo" && isEmptied) {
    // Up removed the referenced rows.
    const look = [`rows of ${from} that refer to missing rows of ${to} remain: clean them up, then VALIDATE`];
    return [{ sql: sql.replace(/;$/, " NOT VALID;"), look }, validateIfPossible(table, key.name)];
  }
  const isRemade =
    key.columnsFrom.some((name) => own.remade.includes(name)) ||
    key.columnsTo.some((name) => target?.remade.includes(name));
  const isNew =
    isRemade || JSON.stringify(before.tables[tableKey(table)]?.foreignKeys[key.name]) !== JSON.stringify(key);
  return [
    { sql, look: isNew || isEmptied ? [`fails while a row of ${from} refers to nothing in ${to}`] : [] },
  ];
}

function validateIfPossible(table: Table, name: string): string {
  return `DO $svc$
BEGIN
  ALTER TABLE ${qualified(table)} VALIDATE CONSTRAINT ${quote(name)};
EXCEPTION
  WHEN foreign_key_violation THEN NULL;
END $svc$;`;
}

function addPolicies(plan: Plan): Statement[] {
  const { before, after, changes } = plan;
  const statements: Statement[] = [];
  const isOn = (table: Table | undefined) =>
    table !== undefined && (table.isRLSEnabled || Object.keys(table.policies).length > 0);
  for (const [key, table] of Object.entries(after.tables)) {
    const [was, is] = [isOn(before.tables[key]), isOn(table)];
    if (was === is) continue;
    statements.push(`ALTER TABLE ${qualified(table)} ${is ? "ENABLE" : "DISABLE"} ROW LEVEL SECURITY;`);
  }
  const made = [
    ...changes.madeTables.map((table) => ({ table, names: Object.keys(table.policies) })),
    ...changes.tables.map((table) => ({ table: table.after, names: table.policies.made })),
  ];
  for (const { table, names } of made) {
    for (const name of names) statements.push(createPolicy(table, table.policies[name]!));
  }
  return statements;
}
