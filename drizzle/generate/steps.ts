import { SvcError } from "../../platform/errors.ts";
import { addColumns } from "./add_columns.ts";
import { alterColumns } from "./columns.ts";
import { compare, missing, type Plan, targetOf } from "./compare.ts";
import { beginEnums, endEnums } from "./enums.ts";
import { difference, type KitStatement } from "./kit.ts";
import { displayName, qualified, quote, tableKey } from "./names.ts";
import { applyRenames, type Rename, tablesOfRenamedColumns } from "./rename.ts";
import { alterSequences } from "./sequences.ts";
import {
  copyOf,
  primaryKeyOf,
  readSnapshot,
  type Schema,
  type Snapshot,
  type Table,
  type Unique,
} from "./snapshot.ts";
import { standingOrder, standsOn } from "./views.ts";
import { Walk } from "./walk.ts";
import type { Step } from "./write.ts";

/**
 * The statements of one direction, in the order that PostgreSQL requires: drops, then objects that others depend on,
 * then changes, then additions.
 */
export async function stepsOf(
  from: Snapshot,
  to: Snapshot,
  renames: readonly Rename[],
  way: Plan["way"],
): Promise<readonly Step[]> {
  const [before, after] = [readSnapshot(from), readSnapshot(to)];
  // How an index is built is no difference; index.ts writes CONCURRENTLY.
  for (const table of [before, after].flatMap(({ tables }) => Object.values(tables)))
    for (const index of Object.values(table.indexes)) index.concurrently = false;
  const renamed = applyRenames(before, after, renames);
  const plan = compare(before, after, way, tablesOfRenamedColumns(renames));
  const walk = new Walk(copyOf(before), renamed);
  await drop(walk, plan);
  await walk.to((at) => {
    at.schemas = { ...at.schemas, ...after.schemas };
    at.enums = { ...after.enums, ...at.enums };
    at.sequences = { ...after.sequences, ...at.sequences };
  });
  walk.say(alterSequences(before, after), (at) => {
    at.sequences = { ...at.sequences, ...after.sequences };
  });
  await beginEnums(walk, plan);
  await alterColumns(walk, plan);
  walk.say(endEnums(plan));
  // Before tables are created, because a table and a type cannot share a name.
  await walk.to((at) => {
    at.enums = after.enums;
  });
  await create(walk, plan);
  await walk.to(
    (at) => {
      at.sequences = after.sequences;
      at.schemas = after.schemas;
    },
    ({ kind, table }) =>
      kind === "DROP SEQUENCE"
        ? { loss: [`position of sequence ${displayName(before.sequences[table]!)}`] }
        : {},
  );
  if ((await difference(walk.at, after)).length > 0)
    throw new SvcError(
      "internal",
      "The generated statements do not lead to the tables: write the revision by hand",
    );
  return walk.steps;
}

async function drop(walk: Walk, plan: Plan): Promise<void> {
  const { before, droppedTables, droppedKeys, droppedViews, tables } = plan;
  const dropped = droppedTables.map(tableKey);
  const each = (edit: (table: Table, changes: Plan["tables"][string]) => void) => (at: Schema) => {
    for (const [key, changes] of Object.entries(tables)) edit(at.tables[key]!, changes);
  };
  const without = (things: Record<string, unknown>, names: readonly string[]) => {
    for (const name of names) delete things[name];
  };
  await walk.to((at) => without(at.views, droppedViews), undefined, droppedViews);
  await walk.to((at) => {
    for (const { table, key } of droppedKeys) delete at.tables[tableKey(table)]!.foreignKeys[key.name];
  });
  // Policies go with their table.
  walk.say([], (at) => {
    for (const key of dropped) at.tables[key]!.policies = {};
  });
  const tableLoss = ({ table }: KitStatement) => ({ loss: [`table ${displayName(before.tables[table]!)}`] });
  await walk.to((at) => without(at.tables, dropped), tableLoss, dropped);
  await walk.to(
    each((table, changes) => {
      for (const part of [
        "policies",
        "indexes",
        "checkConstraints",
        "uniqueConstraints",
        "compositePrimaryKeys",
      ] as const)
        without(table[part], changes[part]);
    }),
  );
  // Generated columns that become plain ones keep their values, and no longer depend on their sources.
  for (const { before: had, after: has } of Object.values(tables)) {
    const freed = Object.keys(has.columns).filter(
      (name) => had.columns[name]?.generated && !has.columns[name]!.generated,
    );
    for (const name of freed)
      walk.say(
        [{ sql: `ALTER TABLE ${qualified(has)} ALTER COLUMN ${quote(name)} DROP EXPRESSION;` }],
        (at) => void delete at.tables[tableKey(has)]!.columns[name]!.generated,
      );
  }
  // Generated columns before those that they are generated from.
  await walk.to(
    each((table, { dropped, remade }) => {
      without(
        table.columns,
        [...dropped, ...remade].filter((name) => table.columns[name]?.generated),
      );
    }),
  );
  await walk.to(
    each((table, { dropped, remade }) => without(table.columns, [...dropped, ...remade])),
    ({ table, name }) => ({ loss: [`column ${displayName(before.tables[table]!, name)}`] }),
  );
}

/** Creates tables, columns, constraints, indexes, foreign keys, policies and views. */
async function create(walk: Walk, plan: Plan): Promise<void> {
  const { after } = plan;
  const every = (edit: (table: Table, now: Table) => void) => (at: Schema) => {
    for (const [key, now] of Object.entries(after.tables)) edit(at.tables[key]!, now);
  };
  await walk.to((at) => {
    for (const table of missing(after.tables, at.tables)) {
      const constraints = Object.entries(table.uniqueConstraints).filter(([, it]) => !isRepeated(table, it));
      at.tables[tableKey(table)] = {
        ...table,
        uniqueConstraints: Object.fromEntries(constraints),
        indexes: {},
        foreignKeys: {},
        policies: {},
      };
    }
  });
  await addColumns(walk, plan);
  await walk.to(
    every((table, { compositePrimaryKeys, uniqueConstraints, checkConstraints }) =>
      Object.assign(table, { compositePrimaryKeys, uniqueConstraints, checkConstraints }),
    ),
  );
  await walk.to(
    every((table, now) => {
      table.indexes = now.indexes;
    }),
  );
  await createForeignKeys(walk, plan, every);
  walk.say(
    rowSecurity(plan),
    every((table, now) => {
      table.isRLSEnabled = now.isRLSEnabled;
    }),
  );
  await walk.to(
    every((table, now) => {
      table.policies = now.policies;
    }),
  );
  const views = standingOrder(Object.values(after.views), standsOn).map(tableKey);
  await walk.to(
    (at) => {
      at.views = after.views;
    },
    undefined,
    views,
  );
}

/** Inside CREATE TABLE, PostgreSQL merges constraints over equal columns, and a later drop would find only the first. */
function isRepeated(table: Table, unique: Unique): boolean {
  const columns = String(unique.columns.toSorted());
  const uniques = Object.values(table.uniqueConstraints);
  return [primaryKeyOf(table), ...uniques.slice(0, uniques.indexOf(unique))].some(
    (other) => other && String(other.columns.toSorted()) === columns,
  );
}

type Every = (edit: (table: Table, now: Table) => void) => (at: Schema) => void;

/** In the way back, up has removed referenced rows: such a key is validated only if that is possible. */
async function createForeignKeys(walk: Walk, { after, tables, way }: Plan, every: Every): Promise<void> {
  const validations: Step[] = [];
  const note = ({ sql, table: tableName, name }: KitStatement): Partial<Step> => {
    const own = tables[tableName];
    const table = after.tables[tableName]!;
    const key = table.foreignKeys[name]!;
    const hasRows = own && !key.columnsFrom.some((column) => own.added.includes(column));
    if (!hasRows) return {};
    const target = tables[targetOf(key)];
    const isEmptied = !target || key.columnsTo.some((column) => target.added.includes(column));
    const [from, to] = [displayName(table), displayName({ schema: key.schemaTo, name: key.tableTo })];
    if (way === "undo" && isEmptied) {
      validations.push({ sql: validateIfPossible(table, name) });
      const look = [
        `rows of ${from} that refer to missing rows of ${to} remain: clean them up, then VALIDATE`,
      ];
      return { sql: sql.replace(/;$/, " NOT VALID;"), look };
    }
    return {};
  };
  await walk.to(
    every((table, now) => {
      table.foreignKeys = now.foreignKeys;
    }),
    note,
  );
  walk.say(validations);
}

function validateIfPossible(table: Table, name: string): string {
  return `DO $svc$
BEGIN
  ALTER TABLE ${qualified(table)} VALIDATE CONSTRAINT ${quote(name)};
EXCEPTION
  WHEN foreign_key_violation THEN NULL;
END $svc$;`;
}

function rowSecurity({ before, after }: Plan): Step[] {
  const isOn = (table: Table | undefined) =>
    table !== undefined && (table.isRLSEnabled || Object.keys(table.policies).length > 0);
  return Object.entries(after.tables)
    .filter(([key, table]) => isOn(before.tables[key]) !== isOn(table))
    .map(([, table]) => ({
      sql: `ALTER TABLE ${qualified(table)} ${isOn(table) ? "ENABLE" : "DISABLE"} ROW LEVEL SECURITY;`,
    }));
}
