import * as pg from "drizzle-orm/pg-core";
import fc from "fast-check";

/** A schema as data, so that fast-check can print and shrink it. */
export interface RandomSchema {
  tables: Partial<Record<TableName, RandomTable>>;
  /** The values of the enum mood. */
  mood: string[];
  view: boolean;
}

export interface RandomTable {
  id: "integer" | "bigint" | "serial" | "bigserial" | "identity" | "by default";
  /** The constraint that makes id unique. */
  key: "primary" | "composite" | "unique";
  columns: Partial<Record<ColumnName, RandomColumn>>;
}

export interface RandomColumn {
  /** The index of its type in the family. */
  type: number;
  notNull: boolean;
  default: boolean;
  unique: boolean;
  index: "none" | "plain" | "desc" | "expression" | "partial" | "unique";
  check: boolean;
  onDelete: "cascade" | "set null" | "no action";
}

export const tableNames = ["t1", "t 2", "Order", "select"] as const;
export type TableName = (typeof tableNames)[number];
const columnNames = ["n1", "Nr", "s1", "e e", "d1", "j1", "l1", "b1", "f1", "f2", "g1", "u1"] as const;
export type ColumnName = (typeof columnNames)[number];

interface Family {
  types: ((mood: Mood) => pg.PgColumnBuilderBase)[];
  /** The value of a row, as a literal that is valid for the type. */
  value: (row: number, type: number) => string;
  default?: (type: number) => string;
  check?: (name: string, type: number) => string;
  /** Whether the type can be in an index. */
  indexes: boolean;
  expression?: (name: string, type: number) => string;
  /** Whether its values are different in each row. */
  differs: boolean;
}

export type Mood = pg.PgEnum<[string, ...string[]]>;

const number: Family = {
  types: [
    () => pg.integer(),
    () => pg.bigint({ mode: "number" }),
    () => pg.smallint(),
    () => pg.numeric({ precision: 10, scale: 2 }),
    () => pg.doublePrecision(),
    () => pg.real(),
    () => pg.text(),
    () => pg.varchar({ length: 20 }),
  ],
  value: (row) => `'${row}'`,
  default: () => "'7'",
  check: (name, type) => (type >= 6 ? `${name} <> 'zzz'` : `${name} > 0`),
  indexes: true,
  expression: (name, type) => (type >= 6 ? `upper(${name})` : `(${name} + 1)`),
  differs: true,
};

const families: Record<string, Family> = {
  n: number,
  N: number,
  s: {
    types: [
      () => pg.text(),
      () => pg.varchar({ length: 12 }),
      () => pg.varchar(),
      () => pg.text().array(),
      () => pg.varchar({ length: 9 }).array(),
    ],
    value: (row, type) => (type >= 3 ? `'{"it''s ${row}"}'` : `'it''s ${row}'`),
    default: (type) => (type >= 3 ? "'{}'" : "'it''s'"),
    check: (name, type) =>
      type >= 3 ? `cardinality(${name}) < 9` : `length(${name}) < 12 and ${name} <> 'a;b'`,
    indexes: true,
    expression: (name, type) => (type >= 3 ? `(${name}[1])` : `lower(${name})`),
    differs: true,
  },
  e: {
    types: [(mood) => mood(), () => pg.text(), (mood) => mood(), () => pg.varchar({ length: 30 })],
    value: (row) => `'x${row}'`,
    default: (type) => (type === 2 ? "'x4'" : "'x1'"),
    check: (name) => `${name} <> 'x3'`,
    indexes: true,
    differs: true,
  },
  l: {
    types: [(mood) => mood().array(), () => pg.text().array()],
    value: (row) => `'{x${row}}'`,
    default: () => "'{x1}'",
    indexes: true,
    differs: true,
  },
  d: {
    types: [
      () => pg.date(),
      () => pg.timestamp(),
      () => pg.timestamp({ withTimezone: true, precision: 3 }),
      () => pg.text(),
    ],
    value: (row) => `'2026-01-0${row}'`,
    default: (type) => (type === 1 || type === 2 ? "now()" : "'2026-02-01'"),
    check: (name, type) => (type === 3 ? `${name} > ''` : `${name} > '2020-01-01'`),
    indexes: true,
    differs: true,
  },
  j: {
    types: [() => pg.jsonb(), () => pg.json(), () => pg.text()],
    value: (row) => `'{"it''s": ${row}}'`,
    default: () => `'{"a":"it''s"}'`,
    indexes: false,
    differs: false,
  },
  b: {
    types: [() => pg.boolean(), () => pg.integer(), () => pg.smallint()],
    value: (row, type) => (type === 0 ? `${row % 2 === 0}` : `${row % 2}`),
    default: (type) => (type === 0 ? "true" : "1"),
    indexes: true,
    differs: false,
  },
  u: {
    types: [() => pg.uuid(), () => pg.text()],
    value: (row) => `'00000000-0000-0000-0000-00000000000${row}'`,
    default: (type) => (type === 0 ? "gen_random_uuid()" : "'0'"),
    indexes: true,
    differs: true,
  },
  f: {
    types: [() => pg.integer(), () => pg.bigint({ mode: "number" })],
    value: (row) => `${row}`,
    indexes: true,
    differs: true,
  },
  g: {
    types: [() => pg.integer(), () => pg.integer()],
    value: (row) => `${row}`,
    indexes: true,
    differs: false,
  },
};

export const familyOf = (name: string) => families[name[0]!]!;
export const typeOf = (name: string, { type }: RandomColumn) => type % familyOf(name).types.length;
export const targets: Record<string, TableName> = { f1: "t1", f2: "Order" };
const rowCount = 2;

const column: fc.Arbitrary<RandomColumn> = fc.record({
  type: fc.nat(7),
  notNull: fc.boolean(),
  default: fc.boolean(),
  unique: fc.boolean(),
  index: fc.constantFrom("none", "none", "plain", "desc", "expression", "partial", "unique"),
  check: fc.boolean(),
  onDelete: fc.constantFrom("cascade", "set null", "no action"),
});

const optional = <Name extends string, T>(names: readonly Name[], value: fc.Arbitrary<T>) =>
  fc.record(Object.fromEntries(names.map((name) => [name, value])) as Record<Name, fc.Arbitrary<T>>, {
    requiredKeys: [],
  }) as fc.Arbitrary<Partial<Record<Name, T>>>;

const table: fc.Arbitrary<RandomTable> = fc.record({
  id: fc.constantFrom("integer", "bigint", "serial", "bigserial", "identity", "by default"),
  key: fc.constantFrom("primary", "primary", "composite", "unique"),
  columns: optional(columnNames, column),
});

const schema: fc.Arbitrary<RandomSchema> = fc.record({
  tables: optional(tableNames, table),
  mood: fc
    .shuffledSubarray(["x1", "x2", "x3", "x4", "x5", "x6"])
    .map((values) => [...new Set([...values, "x1", "x2", "x3", "x4"])]),
  view: fc.boolean(),
});

/** Two schemas with much, little or nothing in common. */
export const schemaPair: fc.Arbitrary<[RandomSchema, RandomSchema]> = fc
  .tuple(schema, schema, fc.array(fc.boolean(), { minLength: 60, maxLength: 60 }), fc.boolean())
  .map(([from, other, coins, mix]) => {
    if (!mix) return [from, other];
    let at = 0;
    const coin = () => coins[at++ % coins.length];
    const to: RandomSchema = { ...other, mood: coin() ? from.mood : other.mood, tables: {} };
    for (const name of tableNames) {
      const [a, b] = [from.tables[name], other.tables[name]];
      if (!a || !b) {
        const one = coin() ? a : b;
        if (one) to.tables[name] = one;
        continue;
      }
      const columns: RandomTable["columns"] = {};
      for (const key of columnNames) {
        const one = coin() || coin() ? a.columns[key] : b.columns[key];
        if (one) columns[key] = one;
      }
      to.tables[name] = { ...(coin() ? a : b), columns };
    }
    return [from, to];
  });

/** Foreign keys and generated columns stay nullable. */
export const mayBeNotNull = (name: string) => !/^[fg]/.test(name);

export function isGenerated(
  name: string,
  description: RandomColumn,
  columns: RandomTable["columns"],
): boolean {
  return name.startsWith("g") && typeOf(name, description) === 1 && columns.n1 !== undefined;
}

/**
 * Inserts rows for the first schema that allow a migration to the second. Tables that could not keep rows (because of a new
 * NOT NULL column without a default) get none.
 */
export function rowsFor(from: RandomSchema, to: RandomSchema): string {
  const full = tableNames.filter(
    (name) => from.tables[name] && mayHaveRows(from.tables[name], to.tables[name]),
  );
  const inserts: string[] = [];
  // Rows can refer to each other only after all of them exist.
  const references: string[] = [];
  for (const name of full) {
    const { id, columns, key } = from.tables[name]!;
    const next = to.tables[name];
    for (let row = 1; row <= rowCount; row++) {
      const values: [string, string][] = /^(serial|bigserial|identity)$/.test(id) ? [] : [["id", `${row}`]];
      for (const [column, description] of Object.entries(columns)) {
        if (isGenerated(column, description, columns)) continue;
        const target = targets[column];
        if (target) {
          // The row exists in both schemas.
          if (row > 1 || !full.includes(target)) continue;
          references.push(`update "${name}" set "${column}" = 1 where id = ${row};`);
          continue;
        }
        const inKey = key === "composite" || next?.key === "composite";
        const other = next?.columns[column as ColumnName];
        const mayBeNull = !inKey && !description.notNull && !other?.notNull;
        const value = familyOf(column).value(row, typeOf(column, description));
        values.push([column, mayBeNull && row > 1 ? "null" : value]);
      }
      const [names, list] = [values.map(([column]) => `"${column}"`), values.map(([, value]) => value)];
      inserts.push(
        names.length > 0
          ? `insert into "${name}" (${names.join(", ")}) values (${list.join(", ")});`
          : `insert into "${name}" default values;`,
      );
    }
  }
  return [...inserts, ...references].join("\n");
}

function mayHaveRows(before: RandomTable, after: RandomTable | undefined): boolean {
  if (!after) return true;
  return Object.entries(after.columns).every(([name, description]) => {
    if (before.columns[name as ColumnName] || isGenerated(name, description, after.columns)) return true;
    const family = familyOf(name);
    const hasDefault = description.default && family.default !== undefined;
    const unique = family.differs && (description.unique || description.index === "unique");
    const needed = (description.notNull && mayBeNotNull(name)) || after.key === "composite";
    return hasDefault ? !unique && after.key !== "composite" : !needed;
  });
}
