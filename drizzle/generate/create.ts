import { addColumns } from "./add_column.ts";
import { missing, type TableChanges } from "./compare.ts";
import { additions, addToTable, nothing, withTable } from "./kit.ts";
import { qualified, quote, shown, tableKey } from "./names.ts";
import { impossible, type Plan } from "./plan.ts";
import type { ForeignKey, Schema, Table } from "./snapshot.ts";
import { type Statement, statement } from "./write.ts";

/** Schemas, enums and sequences: what tables may stand on. */
export async function createBases({ before, after }: Plan): Promise<Statement[]> {
  const sqls: string[] = [];
  for (const name of missing(after.schemas, before.schemas)) {
    sqls.push(...(await additions(nothing(after), { ...nothing(after), schemas: { [name]: name } }, 1)));
  }
  for (const part of ["enums", "sequences"] as const) {
    for (const thing of missing<Schema[typeof part][string]>(after[part], before[part])) {
      const alone = { ...nothing(after), [part]: { [tableKey(thing)]: thing } };
      sqls.push(...(await additions(nothing(after), alone, 1)));
    }
  }
  return sqls.map((sql) => statement(sql));
}

/** Tables with their constraints, columns, then constraints of tables that stay, indexes, foreign keys, views. */
export async function createSteps(plan: Plan): Promise<Statement[]> {
  const { after, changes } = plan;
  const statements: Statement[] = [];
  for (const table of changes.madeTables) {
    const alone = { ...table, indexes: {}, foreignKeys: {}, policies: {}, isRLSEnabled: false };
    const [sql] = await additions(nothing(after), withTable(after, alone), 1);
    statements.push(statement(sql!));
  }
  for (const table of changes.tables) statements.push(...(await addColumns(plan, table)));
  for (const table of changes.tables) statements.push(...(await addConstraints(plan, table)));
  for (const table of changes.madeTables) {
    for (const index of Object.values(table.indexes)) {
      // Of an empty table: nobody waits.
      statements.push(statement(await addIndex(plan, table, { ...index, concurrently: false })));
    }
  }
  for (const { table, key } of changes.madeKeys) statements.push(...(await addForeignKey(plan, table, key)));
  statements.push(...(await addPolicies(plan)));
  for (const view of changes.madeViews) {
    const alone = { ...nothing(after), views: { [tableKey(view)]: view } };
    statements.push(statement((await additions(nothing(after), alone, 1))[0]!));
  }
  return statements;
}

async function addConstraints(plan: Plan, changes: TableChanges): Promise<Statement[]> {
  const { before, after: table } = changes;
  const { after } = plan;
  const statements: Statement[] = [];
  const place = shown(table);
  // A generated column has other values than before, which nothing has held to a key yet.
  const isRemade = (columns: readonly string[]) => columns.some((name) => changes.remade.includes(name));
  if (changes.madePrimaryKey) {
    const { name, columns } = changes.madePrimaryKey;
    const look = [`fails while two rows of ${place} have the same ${columns.join(", ")}, or one has none`];
    const key = `PRIMARY KEY (${columns.map(quote).join(", ")})`;
    statements.push(
      statement(`ALTER TABLE ${qualified(table)} ADD CONSTRAINT ${quote(name)} ${key};`, { look }),
    );
  }
  for (const name of changes.madeUniques) {
    const unique = table.uniqueConstraints[name]!;
    const isNew =
      JSON.stringify(before.uniqueConstraints[name]) !== JSON.stringify(unique) || isRemade(unique.columns);
    const look = isNew ? [`fails while two rows of ${place} have the same ${unique.columns.join(", ")}`] : [];
    statements.push(
      statement(await addToTable(after, table, { uniqueConstraints: { [name]: unique } }), { look }),
    );
  }
  for (const name of changes.madeChecks) {
    const check = table.checkConstraints[name]!;
    const look =
      before.checkConstraints[name]?.value === check.value ? [] : [`fails while a row of ${place} breaks it`];
    statements.push(
      statement(await addToTable(after, table, { checkConstraints: { [name]: check } }), { look }),
    );
  }
  for (const index of changes.madeIndexes) {
    const isNew =
      !before.indexes[index.name]?.isUnique || isRemade(index.columns.map(({ expression }) => expression));
    const look =
      index.isUnique && isNew ? [`fails while two rows of ${place} are the same in this index`] : [];
    // One that is only built again, because its column changed, is no longer in anyone's way.
    const concurrently = index.concurrently && !before.indexes[index.name];
    statements.push(statement(await addIndex(plan, table, { ...index, concurrently }), { look }));
  }
  return statements;
}

function addIndex({ after }: Plan, table: Table, index: Table["indexes"][string]): Promise<string> {
  return addToTable(after, table, { indexes: { [index.name]: index } });
}

async function addForeignKey(plan: Plan, table: Table, key: ForeignKey): Promise<Statement[]> {
  const { before, after, changes, way } = plan;
  const sql = await addToTable(after, table, { foreignKeys: { [key.name]: key } });
  const own = changes.tables.find((it) => it.after === table);
  const hasRows = own && !key.columnsFrom.some((name) => own.made.includes(name));
  if (!hasRows) return [statement(sql)];
  const targetKey = tableKey({ schema: key.schemaTo, name: key.tableTo });
  const target = changes.tables.find((it) => tableKey(it.after) === targetKey);
  const isEmptied = !target || key.columnsTo.some((name) => target.made.includes(name));
  const [from, to] = [shown(table), shown({ schema: key.schemaTo, name: key.tableTo })];
  if (way === "undo" && isEmptied) {
    // The rows that were referred to went with up.
    const look = [
      `rows of ${from} that refer to what is gone from ${to} are let be: clear them, then VALIDATE`,
    ];
    return [
      statement(sql.replace(/;$/, " NOT VALID;"), { look }),
      statement(validateIfPossible(table, key.name)),
    ];
  }
  const isRemade =
    key.columnsFrom.some((name) => own.remade.includes(name)) ||
    key.columnsTo.some((name) => target?.remade.includes(name));
  const isNew =
    isRemade || JSON.stringify(before.tables[tableKey(table)]?.foreignKeys[key.name]) !== JSON.stringify(key);
  return [
    statement(sql, {
      look: isNew || isEmptied ? [`fails while a row of ${from} refers to nothing in ${to}`] : [],
    }),
  ];
}

function validateIfPossible(table: Table, name: string): string {
  return [
    "DO $svc$",
    "BEGIN",
    `  ALTER TABLE ${qualified(table)} VALIDATE CONSTRAINT ${quote(name)};`,
    "EXCEPTION",
    "  WHEN foreign_key_violation THEN NULL;",
    "END $svc$;",
  ].join("\n");
}

async function addPolicies(plan: Plan): Promise<Statement[]> {
  const { before, after, changes } = plan;
  const statements: Statement[] = [];
  const isOn = (table: Table | undefined) =>
    table !== undefined && (table.isRLSEnabled || Object.keys(table.policies).length > 0);
  for (const [key, table] of Object.entries(after.tables)) {
    const [was, is] = [isOn(before.tables[key]), isOn(table)];
    if (was === is) continue;
    statements.push(
      statement(`ALTER TABLE ${qualified(table)} ${is ? "ENABLE" : "DISABLE"} ROW LEVEL SECURITY;`),
    );
  }
  const made = [
    ...changes.madeTables.map((table) => ({ table, names: Object.keys(table.policies) })),
    ...changes.tables.map((table) => ({ table: table.after, names: table.madePolicies })),
  ];
  for (const { table, names } of made) {
    for (const name of names) {
      statements.push(
        statement(await addToTable(after, table, { policies: { [name]: table.policies[name]! } })),
      );
    }
  }
  return statements;
}

/** Roles are the server's and not the database's; policies of foreign tables cannot be followed. */
export function refuseForeign(plan: Plan): void {
  for (const part of ["roles", "policies"] as const) {
    if (JSON.stringify(plan.before[part]) === JSON.stringify(plan.after[part])) continue;
    const what =
      part === "roles" ? "A role belongs to the server, not to this database" : "A policy on a foreign table";
    throw impossible(
      plan,
      `${what} and is not written`,
      "create it by hand, and mark it as .existing() in the schema",
    );
  }
}
