import { expect, test } from "bun:test";
import { is, sql as raw } from "drizzle-orm";
import * as pg from "drizzle-orm/pg-core";
import { tripDatabase } from "../../tests/support/database/round_trip.ts";
import { parseRename } from "./index.ts";

// Every kind of change to a schema: up, down and up again in a database with rows. `trip` compares the schema after each
// step with one that was created directly, and the rows of what is not marked as lost.

const { trip, between, sql } = tripDatabase();

interface Change {
  from: unknown[];
  to: unknown[];
  /** Inserts the rows of `from`: two by default, if a table t has plain columns. */
  rows?: string;
  /** Inserts the rows of `to`, for the way from `to` to `from`. */
  others?: string;
  renames?: string[];
  /** Parts of up.sql, and of down.sql. */
  up?: string[];
  down?: string[];
  /** What neither contains. */
  never?: RegExp;
  irreversible?: string;
  /** Statements that have to succeed in the end. */
  finally?: string;
  /** The first line of each revision, or the first two where the first is a mark. */
  parts?: string[];
  /** The rows after up; those after down, by default the rows before unless up marks a loss. */
  after?: Record<string, Record<string, unknown>[]>;
  back?: Record<string, Record<string, unknown>[]>;
}

const go = (from: unknown[], to: unknown[], more: Partial<Change> = {}): Change => ({ from, to, ...more });

type Column = pg.PgColumnBuilderBase;
// biome-ignore lint/suspicious/noExplicitAny: the columns of a table that is built from a record
type Self = Record<string, any>;
type Extra = (self: Self) => pg.PgTableExtraConfigValue[];

const id = () => pg.integer().primaryKey();
const table = (name: string, columns: Record<string, Column>, extra: Extra = () => []) =>
  pg.pgTable(name, columns, (self) => extra(self)) as Self;
/** A table t with the column c. */
const t = (c: Column = pg.text(), extra: Extra = () => []) => table("t", { id: id(), c }, extra);
const bare = (extra: Extra = () => []) => table("t", { id: id() }, extra);
const seeded = "insert into t values (1, '1'), (2, '2')";
const ids = "insert into t (id) values (1), (2)";

/** The rows of t, with these values in c. */
const list = (...values: unknown[]) => ({ t: values.map((c, at) => ({ id: at + 1, c })) });

const big = (name = "bigint") => pg.customType<{ data: string }>({ dataType: () => name })();
const mood = (...values: [string, ...string[]]) => pg.pgEnum("mood", values);
const view = (name: string, definition: string) => pg.pgView(name, {}).as(raw.raw(definition));
const stored = (name: string, definition: string) => pg.pgMaterializedView(name, {}).as(raw.raw(definition));
const space = pg.pgSchema("space");

const tables: Record<string, Change> = {
  "a table": go([], [t()], { up: ['CREATE TABLE "t"'], down: ["-- svc: data-loss table t\n"] }),
  "a table and a column are replaced": go(
    [table("old", { id: id(), c: pg.text() }), table("kept", { id: id(), c: pg.text() })],
    [table("new", { id: id(), c: pg.text() }), table("kept", { id: id(), d: pg.text() })],
    {
      rows: "insert into old values (1, 'x'); insert into kept values (1, 'x')",
      up: ["-- svc: data-loss table old\n", "-- svc: data-loss column kept.c\n"],
      down: ["-- svc: data-loss table new\n", "-- svc: data-loss column kept.d\n"],
    },
  ),
  "tables in a circle, with a table that refers to them": (() => {
    const b = (): pg.AnyPgColumn => two.b.id;
    const two = {
      a: pg.pgTable("a", { id: id(), b: pg.integer().references(b) }),
      b: pg.pgTable("b", {
        id: id(),
        a: pg.integer().references((): pg.AnyPgColumn => two.a.id),
        self: pg.integer().references(b),
      }),
    };
    return go(
      [two.a, two.b, pg.pgTable("c", { id: id(), a: pg.integer().references(() => two.a.id) })],
      [pg.pgTable("c", { id: id(), a: pg.integer() })],
      {
        rows: "insert into a values (1); insert into b values (1, 1, 1); insert into c values (1, 1), (2, null)",
        up: ['-- svc: data-loss table a\nDROP TABLE "a";\n'],
        down: ["NOT VALID"],
        never: /CASCADE/,
        back: {
          a: [],
          b: [],
          c: [
            { id: 1, a: 1 },
            { id: 2, a: null },
          ],
        },
      },
    );
  })(),
  "a schema with a table, an enum and a sequence": go(
    [],
    [
      space,
      space.enum("kind", ["a"]),
      space.table("t", { id: pg.serial().primaryKey(), kind: space.enum("kind", ["a"])().default("a") }),
      space.sequence("s", { startWith: 3 }),
    ],
    {
      others: "insert into space.t default values",
      down: ["-- svc: data-loss table space.t\n", "-- svc: data-loss position of sequence space.s\n"],
    },
  ),
  "a column of a table in a schema, which another refers to": (() => {
    const make = (c: Column) => {
      const inside = space.table("t", { id: id(), c });
      return [space, inside, pg.pgTable("u", { t: pg.integer().references(() => inside.id) })];
    };
    const rows = "insert into space.t values (1, '1'); insert into u values (1)";
    return go(make(pg.integer()), make(pg.text()), { rows, others: rows });
  })(),
  "a table named like one in another schema": go(
    [space, t()],
    [space, t(), space.table("t", { id: id(), c: pg.text() })],
  ),
};

const columns: Record<string, Change> = {
  "a column": go([bare()], [t()], {
    up: ['ALTER TABLE "t" ADD COLUMN "c" text;\n'],
    down: ["-- svc: data-loss column t.c\n"],
  }),
  "a column with a default": go([bare()], [t(pg.text().default("it's"))]),
  "a NOT NULL column with a default: when it comes back, rows get the default": go(
    [t(pg.integer().notNull().default(7))],
    [bare()],
    {
      rows: "insert into t values (1, 3)",
      down: ['ADD COLUMN "c" integer DEFAULT 7 NOT NULL;'],
      back: list(7),
    },
  ),
  "a NOT NULL column: it comes back with NULL": go([t(pg.text().notNull())], [bare()], {
    others: "",
    down: ["-- Look here: the values of t.c are gone, existing rows get NULL"],
    back: list(null, null),
  }),
  "a NOT NULL column without a default fails if there are rows": go([bare()], [t(pg.text().notNull())], {
    rows: "",
    up: ["-- Look here: fails while t has rows: give c a default"],
  }),
  "a unique column with a default: it comes back with NULL": go(
    [t(pg.integer().notNull().default(7).unique())],
    [bare()],
    { others: "", rows: "insert into t values (1, 3), (2, 4)", back: list(null, null) },
  ),
  "a unique column with random values": go(
    [
      t(
        pg
          .uuid()
          .notNull()
          .unique()
          .default(raw`gen_random_uuid()`),
      ),
    ],
    [bare()],
  ),
  "a column that refers to another table": (() => {
    const other = table("u", { id: id() });
    const rows = `insert into u values (1), (2)`;
    return go([other, bare()], [other, t(pg.integer().references(() => other.id))], {
      rows: `${rows}; ${ids}`,
      others: `${rows}; ${seeded}`,
    });
  })(),
  "a serial column: it comes back with numbers": go([t(pg.serial().unique())], [bare()], {
    back: list(1, 2),
  }),
  "an identity column: it comes back with numbers": go(
    [t(pg.integer().generatedAlwaysAsIdentity().unique())],
    [bare()],
    { back: list(1, 2) },
  ),
  "a column of the primary key": go([t(pg.text().notNull())], [table("t", { c: pg.text().primaryKey() })], {
    irreversible: "the values of t.id are gone, and the primary key needs them",
  }),
  "a column with a NULLS NOT DISTINCT constraint": go(
    [t(pg.text(), ({ c }) => [pg.unique("t_u").on(c).nullsNotDistinct()])],
    [bare()],
    { others: "", irreversible: "the values of t.c are gone, and t_u allows only one row without a value" },
  ),
  "NOT NULL": go([t()], [t(pg.text().notNull())], {
    up: ["-- Look here: fails while a row holds NULL in t.c: fill those rows first\n"],
    down: ['ALTER TABLE "t" ALTER COLUMN "c" DROP NOT NULL;\n'],
  }),
  "columns of custom types, bits and intervals, and enums whose names start like a type": (() => {
    const kind = pg.pgEnum("text_kind", ["a", "b"]);
    const odd = pg.pgEnum('Odd "name"', ["a", "it's"]);
    const made = table("t", {
      id: id(),
      search: big("tsvector"),
      wide: big("character varying(20)"),
      at: pg.timestamp({ precision: 3, withTimezone: true }).array(),
      span: pg.interval({ fields: "day to second", precision: 3 }),
      bits: pg.bit({ dimensions: 3 }),
      kind: kind().default("a"),
      odd: odd().array().default(["it's"]),
      bytes: pg
        .customType<{ data: string }>({ dataType: () => "bytea" })()
        .default(raw`'\\x00'`),
    });
    return go([bare()], [kind, odd, made]);
  })(),
};

// Each leads to the next, and back.
const defaults: Record<string, Column> = {
  none: pg.text(),
  "text with quotes": pg.text().default("it's;--"),
  "an expression": pg.text().default(raw`upper('x')`),
  "another text": pg.varchar({ length: 9 }).default("9"),
  "a number": pg.integer().default(0),
  "a decimal": pg.numeric().default("1.5"),
  "a big number": pg.bigint({ mode: "bigint" }).default(9_007_199_254_740_993n),
};

const typeChanges: [string, Column, Column, Partial<Change>?][] = [
  ["int to bigint", pg.integer(), pg.bigint({ mode: "number" })],
  ["int to text, with defaults", pg.integer().default(1), pg.text().default("x"), { never: /data-loss/ }],
  ["text to int, with defaults", pg.text().default("1"), pg.integer().default(2)],
  ["int to smallint", pg.integer(), pg.smallint()],
  ["int to numeric", pg.integer(), pg.numeric({ precision: 9, scale: 2 })],
  ["double to real", pg.doublePrecision(), pg.real()],
  ["int to boolean", pg.integer(), pg.boolean(), { rows: "insert into t values (1, 0), (2, 1)", others: "" }],
  [
    "text to uuid",
    pg.text(),
    pg.uuid(),
    { rows: `insert into t values (1, '${crypto.randomUUID()}')`, others: "" },
  ],
  ["json to jsonb", pg.json(), pg.jsonb()],
  ["text to jsonb", pg.text(), pg.jsonb()],
  [
    "date to timestamp",
    pg.date(),
    pg.timestamp(),
    { rows: "insert into t values (1, '2026-01-01')", others: "" },
  ],
  [
    "timestamp to timestamptz, in any time zone",
    pg.timestamp(),
    pg.timestamp({ withTimezone: true }),
    {
      rows: "set timezone = 'Asia/Tokyo'; insert into t values (1, '2026-01-01 12:00')",
      others: "reset timezone; insert into t values (1, '2026-01-01 12:00')",
    },
  ],
  ["varchar to text", pg.varchar({ length: 9 }), pg.text()],
  [
    "varchar to a shorter one",
    pg.varchar({ length: 9 }),
    pg.varchar({ length: 5 }),
    {
      rows: "insert into t values (1, 'short'), (2, 'too long')",
      up: [
        `-- svc: data-loss column t.c where ("c"::varchar(5))::varchar(9) IS DISTINCT FROM "c" -- `,
        `SET DATA TYPE varchar(5) USING "c"::varchar(5);`,
      ],
      after: list("short", "too l"),
    },
  ],
  ["text to char", pg.text(), pg.char({ length: 5 })],
  [
    "numeric to fewer digits",
    pg.numeric({ precision: 9, scale: 4 }),
    pg.numeric({ precision: 9, scale: 2 }),
    { rows: "insert into t values (1, 1.2345)", up: ["-- svc: data-loss column t.c where "] },
  ],
  [
    "timestamp to fewer digits",
    pg.timestamp({ precision: 6 }),
    pg.timestamp({ precision: 3 }),
    {
      rows: "insert into t values (1, '2026-01-01 12:00:00.123456')",
      others: "",
      up: ["-- svc: data-loss column t.c"],
    },
  ],
  [
    "text to text[]",
    pg.text().default("x"),
    pg.text().array().default(["y"]),
    {
      rows: "insert into t values (1, 'a,b'), (2, null), (3, ''), (4, '{}')",
      others: `insert into t values (1, '{"a,b",c}'), (2, null), (3, '{}'), (4, '{null}')`,
    },
  ],
  [
    "int to int[]",
    pg.integer(),
    pg.integer().array(),
    { others: "insert into t values (1, '{1}'), (2, '{1,2}')", down: ["data-loss"] },
  ],
  [
    "int[] to bigint[]",
    pg.integer().array(),
    pg.bigint({ mode: "number" }).array(),
    { rows: "insert into t values (1, '{1,2}')", others: "" },
  ],
  [
    "text[] to shorter texts",
    pg.text().array(),
    pg.varchar({ length: 3 }).array(),
    { rows: "insert into t values (1, '{abcd}')", others: "", up: ["data-loss"] },
  ],
  ["int to serial", pg.integer(), pg.serial()],
];

const enums: Record<string, Change> = {
  "an enum with a column": go(
    [bare()],
    [mood("a", "it's"), t(mood("a", "it's")().notNull().default("it's"))],
    { others: "insert into t values (1, 'a')" },
  ),
  "values at every position": go(
    [mood("c", "f"), t(mood("c")())],
    [mood("a", "b", "c", "d", "e", "f", "it's"), t(mood("a")())],
    {
      rows: "insert into t values (1, 'c')",
      others: "insert into t values (1, 'it''s')",
      up: ["ADD VALUE 'it''s'"],
    },
  ),
  "a value that is the default, in a check and in an index at once": go(
    [mood("good"), t(mood("good")().default("good"), ({ c }) => [pg.index("t_c").on(c)])],
    [
      mood("good", "new"),
      t(mood("good")().default("new"), ({ c }) => [
        pg
          .index("t_c")
          .on(c)
          .where(raw`c <> 'new'`),
        pg.check("t_k", raw`c <> 'new' or id > 0`),
      ]),
    ],
    {
      rows: "insert into t values (1, 'good')",
      others: "insert into t values (1, 'good')",
      never: /ADD VALUE/,
    },
  ),
  "a value that a text column holds which becomes the enum": go(
    [mood("good"), t()],
    [mood("good", "new"), t(mood("good")())],
    { rows: "insert into t values (1, 'new')", others: "insert into t values (1, 'new')" },
  ),
  "an unused value is removed": go(
    [
      mood("good", "so so", "bad"),
      t(mood("good")().notNull().default("good")),
      table("u", { list: mood("bad")().array().default(["bad"]) }),
    ],
    [
      mood("bad", "good"),
      t(mood("bad")().notNull().default("bad")),
      table("u", { list: mood("bad")().array().default([]) }),
    ],
    {
      rows: "insert into t values (1, 'bad'); insert into u values ('{good,bad}')",
      up: [`-- svc: data-loss column t.c where "c"::text IN ('so so') -- value 'so so'\n`],
      back: { t: [{ id: 1, c: "bad" }], u: [{ list: ["good", "bad"] }] },
    },
  ),
  "a used value is removed: rows get NULL or the default": go(
    [
      mood("bad", "good"),
      table("t", {
        id: id(),
        free: mood("bad")(),
        usual: mood("bad")()
          .notNull()
          .default("good" as never),
        list: mood("bad")().array(),
      }),
    ],
    [
      mood("good"),
      table("t", {
        id: id(),
        free: mood("good")(),
        usual: mood("good")().notNull().default("good"),
        list: mood("good")().array(),
      }),
    ],
    {
      rows: "insert into t values (1, 'bad', 'bad', '{good,bad}'), (2, 'good', 'good', '{}')",
      up: [`-- svc: data-loss column t.list where "list"::text[] && ARRAY['bad'] -- value 'bad'\n`],
      after: {
        t: [
          { id: 1, free: null, usual: "good", list: ["good"] },
          { id: 2, free: "good", usual: "good", list: [] },
        ],
      },
    },
  ),
  "a value is renamed": go(
    [
      mood("it's", "b", "bad"),
      table("t", { id: id(), c: mood("it's")().default("it's"), list: mood("it's")().array() }, () => [
        pg.check("t_c", raw`c <> 'bad'`),
      ]),
    ],
    [
      mood("fine", "b", "worse"),
      table("t", { id: id(), c: mood("fine")().default("fine"), list: mood("fine")().array() }, () => [
        pg.check("t_c", raw`c <> 'worse'`),
      ]),
    ],
    {
      renames: ["mood.it's:fine", "mood.bad:worse"],
      rows: `insert into t (id, list) values (1, '{bad,"it''s"}')`,
      up: [`ALTER TYPE "mood" RENAME VALUE 'it''s' TO 'fine';\n`],
      never: /SET DATA TYPE|data-loss/,
      after: { t: [{ id: 1, c: "fine", list: ["worse", "fine"] }] },
    },
  ),
  "text becomes an enum": go([t(pg.text().default("a"))], [mood("a", "b"), t(mood("a")().default("a"))], {
    rows: "insert into t values (1, 'b')",
    others: "insert into t values (1, 'b')",
  }),
  "a column gets another enum": go(
    [pg.pgEnum("old", ["a", "b"]), t(pg.pgEnum("old", ["a", "b"])())],
    [mood("a", "b", "c"), t(mood("a")())],
    { rows: "insert into t values (1, 'b')", others: "insert into t values (1, 'b')" },
  ),
  "an enum becomes an array of it, whose values change too": go(
    [mood("b", "new", "a"), t(mood("b")())],
    [mood("a", "b"), t(mood("a")().array())],
    {
      rows: "insert into t values (1, 'b'), (2, null)",
      others: "insert into t values (1, '{b}'), (2, null)",
    },
  ),
  "an enum defined by an object, in another schema": go(
    [space],
    [
      space,
      space.enum("kind of it", { One: "one", Two: "it's" }),
      table("t", {
        id: id(),
        c: space.enum("kind of it", { One: "one", Two: "it's" })().default("it's"),
        d: space.enum("kind of it", { One: "one", Two: "it's" })().array(),
      }),
    ],
    { up: [`"c" "space"."kind of it" DEFAULT 'it''s'`, '"d" "space"."kind of it"[]'] },
  ),
};

const target = (name: string) =>
  table(name, { id: id(), a: pg.integer(), b: pg.integer() }, ({ a, b }) => [
    pg.unique(`${name}_ab`).on(a, b),
  ]);
const [ta, tb] = [target("a"), target("b")];
const targets = [ta, tb];
const key =
  (columns: string[], to: Self, on: string[], build = (it: pg.ForeignKeyBuilder) => it): Extra =>
  (self) => [
    build(
      pg.foreignKey({
        name: "r_f",
        columns: columns.map((name) => self[name]) as never,
        foreignColumns: on.map((name) => (to as Self)[name]) as never,
      }),
    ),
  ];
const r = (extra?: Extra) => table("r", { x: pg.integer(), y: pg.integer() }, extra);
const referred =
  "insert into a values (1, 1, 1), (2, 2, 2); insert into b values (1, 1, 1), (2, 2, 2); insert into r values (1, 1), (2, null)";

const keyed = (...names: ("id" | "c")[]) =>
  table("t", { id: pg.integer(), c: pg.integer() }, (self) =>
    names.length > 0 ? [pg.primaryKey({ columns: names.map((name) => self[name]) as never })] : [],
  );
const movingKey = (by: "id" | "c") => {
  const [one, other] = [pg.integer().primaryKey(), pg.integer().notNull().unique()];
  const made = pg.pgTable("t", by === "id" ? { id: one, c: pg.integer().notNull() } : { id: other, c: one });
  return [made, pg.pgTable("u", { t: pg.integer().references(() => made.id) })];
};
const selfReference = (column: () => Column) =>
  table("t", { id: column(), c: column() }, ({ id, c }) => [
    pg.unique().on(id),
    pg.foreignKey({ columns: [c], foreignColumns: [id] }),
  ]);

const constraints: Record<string, Change> = {
  "a primary key": go([keyed()], [keyed("id")]),
  "a composite primary key": go([keyed()], [keyed("id", "c")]),
  "the order of a primary key": go([keyed("id", "c")], [keyed("c", "id")]),
  "a column leaves the primary key": go([keyed("id", "c")], [keyed("c")]),
  "the primary key moves to another column, and references follow": go(movingKey("id"), movingKey("c"), {
    rows: `${seeded}; insert into u values (1)`,
    others: `${seeded}; insert into u values (1)`,
  }),
  "a unique constraint": go([t()], [t(pg.text().unique())]),
  "a unique constraint over two columns": go([t()], [t(pg.text(), ({ id, c }) => [pg.unique().on(c, id)])]),
  "a unique constraint changes under its name": go(
    [t(pg.text(), ({ c }) => [pg.unique("t_u").on(c)])],
    [t(pg.text(), ({ id, c }) => [pg.unique("t_u").on(c, id).nullsNotDistinct()])],
  ),
  "unique constraints that repeat the primary key and one another": go(
    [],
    [table("t", { id: id().unique(), c: pg.text().unique("one") }, ({ c }) => [pg.unique("two").on(c)])],
  ),
  "a unique constraint that repeats the primary key is dropped": go(
    [table("t", { id: id().unique(), c: pg.text().unique("one") }, ({ c }) => [pg.unique("two").on(c)])],
    [t()],
    { never: /t_pkey/ },
  ),
  "a check": go([t()], [t(pg.text(), () => [pg.check("t_k", raw`length(c) < 5 and c <> 'a;b--'`)])]),
  "a check changes under its name": go(
    [t(pg.text(), () => [pg.check("t_k", raw`length(c) < 5`)])],
    [t(pg.text(), () => [pg.check("t_k", raw`length(c) < 6`)])],
  ),
  "a check on a column that changes its type": go(
    [t(pg.integer(), () => [pg.check("t_k", raw`c > 0`)])],
    [t(pg.bigint({ mode: "number" }), () => [pg.check("t_k", raw`c > 0`)])],
  ),
  "a check on a column whose name contains that of another": go(
    [table("t", { a: pg.integer(), aa: pg.integer() }, () => [pg.check("k", raw`aa > 0`)])],
    [table("t", { a: pg.text(), aa: pg.integer() }, () => [pg.check("k", raw`aa > 0`)])],
    { rows: "insert into t values (1, 1)", never: /CONSTRAINT/ },
  ),
  "a foreign key": go([...targets, r()], [...targets, r(key(["x"], ta, ["id"]))], {
    rows: referred,
    others: referred,
  }),
  "the actions of a foreign key": go(
    [...targets, r(key(["x"], ta, ["id"], (it) => it.onDelete("cascade")))],
    [...targets, r(key(["x"], ta, ["id"], (it) => it.onDelete("set null").onUpdate("cascade")))],
    { rows: referred, others: referred },
  ),
  "the target of a foreign key": go(
    [...targets, r(key(["x"], ta, ["id"]))],
    [...targets, r(key(["x"], tb, ["id"]))],
    { rows: referred, others: referred },
  ),
  "a composite foreign key": go([...targets, r()], [...targets, r(key(["x", "y"], ta, ["a", "b"]))], {
    rows: referred,
    others: referred,
  }),
  "a composite foreign key gets another order": go(
    [...targets, r(key(["x", "y"], ta, ["a", "b"]))],
    [...targets, r(key(["y", "x"], ta, ["a", "b"]))],
    { rows: referred, others: referred },
  ),
  "the table of a composite foreign key is dropped": go(
    [...targets, r(key(["x", "y"], ta, ["a", "b"]))],
    [tb, r()],
    { rows: referred },
  ),
  "a self-referencing foreign key, whose columns change their type": go(
    [selfReference(() => pg.integer())],
    [selfReference(() => pg.text())],
    { rows: "insert into t values (1, 1), (2, 1)", others: "insert into t values (1, 1), (2, 1)" },
  ),
};

// Each leads to the next, and back.
const indexes: Record<string, Extra> = {
  "no index": () => [],
  "an index": ({ c }) => [pg.index("t_i").on(c)],
  "a descending one": ({ c }) => [pg.index("t_i").on(c.desc().nullsLast())],
  "one on two columns": ({ id, c }) => [pg.index("t_i").on(c, id.desc())],
  "one on expressions": () => [pg.index("t_i").on(raw`lower(c)`, raw`(c || ';--')`)],
  "a partial one": ({ c }) => [
    pg
      .index("t_i")
      .on(c.op("text_pattern_ops"))
      .where(raw`c <> 'a;b'`),
  ],
  "a unique one": ({ c }) => [pg.uniqueIndex("t_i").on(c)],
  "one with options": ({ c }) => [pg.uniqueIndex("t_i").using("btree", c).with({ fillfactor: "70" })],
  "another method": ({ c }) => [pg.index("t_i").using("hash", c)],
  "an operator class with an order": ({ c }) => [
    pg.index("t_i").on(c.desc().nullsFirst().op("text_pattern_ops")),
  ],
  "one built concurrently": ({ c }) => [pg.index("t_i").on(c).concurrently()],
};

const concurrent = (names: readonly string[], columns = names, table = "t") =>
  pg.pgTable(
    table,
    { id: id(), ...Object.fromEntries(columns.map((name) => [name, pg.text()])) },
    (self: Self) => names.map((name) => pg.index(`t_${name}`).on(self[name]).concurrently()),
  );
const create = (name: string, on = "t") =>
  `-- svc: no-transaction CREATE INDEX CONCURRENTLY "t_${name}" ON "${on}" USING btree ("${name}");`;
const concurrently: Record<string, Change> = {
  "two indexes built concurrently, with their columns": go([concurrent([])], [concurrent(["a", "b"])], {
    parts: ['ALTER TABLE "t" ADD COLUMN "a" text;', create("a"), create("b")],
  }),
  "an index built concurrently is dropped concurrently": go([concurrent(["a"])], [concurrent([], ["a"])], {
    parts: ['-- svc: no-transaction DROP INDEX CONCURRENTLY "t_a";'],
    down: [create("a").replace(" CREATE", "\nCREATE")],
  }),
  "an index built concurrently is replaced, while its table is renamed": go(
    [concurrent(["a"])],
    [concurrent(["id"], ["a"], "s")],
    {
      renames: ["t:s"],
      parts: [
        '-- svc: no-transaction DROP INDEX CONCURRENTLY "t_a";',
        'ALTER TABLE "t" RENAME TO "s";',
        create("id", "s"),
      ],
    },
  ),
  "an index of a new table is not built concurrently": go([], [concurrent(["a"])], { never: /CONCURRENTLY/ }),
  "nor is one that a foreign key needs": (() => {
    const unique = table("t", { id: id(), a: pg.integer() }, ({ a }) => [
      pg.uniqueIndex("t_a").on(a).concurrently(),
    ]);
    return go(
      [table("t", { id: id(), a: pg.integer() })],
      [unique, pg.pgTable("u", { t: pg.integer().references(() => unique.a) })],
      { never: /CONCURRENTLY/ },
    );
  })(),
  "nor one that follows its column": go(
    [t(pg.integer(), ({ c }) => [pg.index("t_c").on(c).concurrently()])],
    [t(pg.text(), ({ c }) => [pg.index("t_c").on(c).concurrently()])],
    { never: /CONCURRENTLY/ },
  ),
};

const others: Record<string, Change> = {
  "a view": go([t()], [t(), view("v", "select id from t")]),
  "the definition of a view": go(
    [t(), view("v", "select id as n from t")],
    [t(), view("v", "select id + 1 as n from t")],
  ),
  "a type under a view, and views on that": (() => {
    const on = [
      view("v2", "select n from v1"),
      view("v1", "select id as n, c from t"),
      stored("m", "select n from v2"),
    ];
    return go([t(pg.integer()), ...on], [t(pg.text()), ...on]);
  })(),
  "a column under a view of every column": go(
    [bare(), view("v", "select * from t")],
    [t(), view("v", "select * from t")],
  ),
  "a table with its views": go([t(), view("v", "select id from t"), stored("m", "select id from v")], []),
  "views with options": go(
    [t()],
    [
      t(),
      pg
        .pgView("v", {})
        .with({ securityBarrier: true, checkOption: "local" })
        .as(raw`select id from t`),
      pg
        .pgMaterializedView("m", {})
        .using("heap")
        .with({ fillfactor: 70, autovacuumEnabled: false })
        .tablespace("pg_default")
        .withNoData()
        .as(raw`select 1 as one`),
    ],
    {
      up: [
        'CREATE VIEW "public"."v" WITH (check_option = local, security_barrier = true) AS (',
        'CREATE MATERIALIZED VIEW "public"."m" USING "heap" WITH (fillfactor = 70, autovacuum_enabled = false) TABLESPACE "pg_default" AS (select 1 as one) WITH NO DATA;',
      ],
    },
  ),
  "a sequence": go([], [pg.pgSequence("s", { startWith: 3 })], {
    down: ["-- svc: data-loss position of sequence s\n"],
  }),
  "the options of a sequence": go(
    [pg.pgSequence("s", { cycle: true, maxValue: 90 })],
    [pg.pgSequence("s", { increment: 2, cache: 5 })],
  ),
  "a sequence with a table, an enum and a view": go(
    [pg.pgSequence("s1"), mood("a"), t(), view("v1", "select 1 as one")],
    [pg.pgSequence("s2"), pg.pgEnum("other", ["a"]), table("u", { id: id() }), view("v2", "select 1 as one")],
  ),
  "row level security": go([t()], [t().enableRLS()]),
  "a policy": go([t()], [t(pg.text(), () => [pg.pgPolicy("p", { for: "select", using: raw`c <> 'a--b'` })])]),
  "a policy changes under its name": go(
    [t(pg.text(), () => [pg.pgPolicy("p", { for: "select", using: raw`c <> 'a'` })])],
    [
      t(pg.text(), () => [
        pg.pgPolicy("p", { for: "update", using: raw`true`, withCheck: raw`c <> 'b'`, to: "public" }),
      ]),
    ],
  ),
  "a table with a policy": go([t(pg.text(), () => [pg.pgPolicy("p", { using: raw`true` })])], []),
};

const made = (as: string, c: Column = pg.integer()) =>
  table("t", { id: id(), c, g: pg.integer().generatedAlwaysAs(raw.raw(as)) }, ({ g }) => [
    pg.index("t_g").on(g),
    pg.unique("g_u").on(g),
  ]);
const plain = table("t", { id: id(), c: pg.integer(), g: pg.integer() });
const generated: Record<string, Change> = {
  "a generated column": go([t(pg.integer())], [made("c + 1")]),
  "the expression of a generated column": go([made("c + 1")], [made("c + 2")], { never: /data-loss/ }),
  "a generated column becomes a plain one": go([made("c + 1")], [plain], {
    others: "insert into t values (1, 1, 1), (2, 2, 2)",
  }),
  "a source of a generated column changes its type": go([made("c + 1")], [made("length(c)", pg.text())], {
    others: "",
    rows: "insert into t values (1, 1), (2, 22)",
  }),
  "a generated column is dropped with its source": go([made("c + 1")], [bare()]),
};

const n = (options: pg.PgSequenceOptions & { name?: string }, always = true) => {
  const column = pg.integer();
  return table("t", {
    id: always ? column.generatedAlwaysAsIdentity(options) : column.generatedByDefaultAsIdentity(options),
    c: pg.text(),
  });
};
const counted = "insert into t (c) values ('a'), ('b')";
const identities: Record<string, Change> = {
  "the kind and options of an identity": go([n({})], [n({ increment: 5, cache: 10, cycle: true }, false)], {
    rows: counted,
    others: counted,
  }),
  "the bounds of an identity, which exclude its position": go(
    [n({})],
    [n({ minValue: 100, startWith: 100, maxValue: 200 })],
    { rows: counted, others: counted },
  ),
  "the sequence's name of an identity": go([n({})], [n({ name: "other" })], {
    rows: counted,
    others: counted,
  }),
  "a descending identity has the whole range of its type": go(
    [],
    [
      t(pg.integer().generatedAlwaysAsIdentity({ increment: -1 })),
      table("u", { c: pg.smallint().generatedAlwaysAsIdentity({ increment: -1 }) }),
    ],
    { up: ["INCREMENT BY -1 MINVALUE -2147483648 MAXVALUE -1 START WITH -1", "MINVALUE -32768"] },
  ),
};

const numbers: Record<string, () => Column> = {
  integer: () => pg.integer().primaryKey(),
  serial: () => pg.serial().primaryKey(),
  "big serial": () => pg.bigserial({ mode: "number" }).primaryKey(),
  identity: () => pg.integer().primaryKey().generatedAlwaysAsIdentity(),
  "identity by default": () =>
    pg.bigint({ mode: "number" }).primaryKey().generatedByDefaultAsIdentity({ startWith: 100, increment: 5 }),
};

/** Everything whose name or definition includes the name of a table or column. */
const full = (name: string, a: string, other: string, extra: Record<string, Column> = {}) => {
  const kept = table("kept", { id: id() });
  const own = table(
    name,
    {
      id: pg.serial().primaryKey(),
      [a]: pg.integer().notNull().default(3),
      n: pg.integer().generatedAlwaysAsIdentity(),
      kept: pg.integer().references(() => kept.id),
      g: pg.integer().generatedAlwaysAs(raw.raw(`"${a}" + 1`)),
      ...extra,
    },
    (self) => [
      pg.unique().on(self[a]),
      pg.index().on(self[a]),
      pg
        .index(`${name}_by_${a}`)
        .on(raw.raw(`("${a}" + 1)`))
        .where(raw`${self[a]} > 0`),
      pg.check("positive", raw`${self[a]} > 0`),
      pg.foreignKey({ columns: [self[a]], foreignColumns: [kept.id] }),
    ],
  );
  return [
    kept,
    own,
    pg.pgTable("refers", { id: pg.integer(), [other]: pg.integer().references(() => own[a]) }),
  ];
};
const fullRows =
  "insert into kept values (1), (2); insert into t (a, kept) values (1, 1), (2, null); insert into refers values (1, 2)";
const ints = (...names: string[]) =>
  table("t", Object.fromEntries(names.map((name) => [name, pg.integer()])));
const renames: Record<string, Change> = {
  "of a column, and what is named after it": go(full("t", "a", "r"), full("t", "b", "r"), {
    renames: ["t.a:b"],
    rows: fullRows,
    up: ['ALTER TABLE "t" RENAME COLUMN "a" TO "b";\n'],
    down: ['ALTER TABLE "t" RENAME COLUMN "b" TO "a";\n'],
    never: /DROP|data-loss|ADD/,
  }),
  "of a table, and what is named after it": go(full("t", "a", "r"), full("s", "a", "r"), {
    renames: ["t:s"],
    rows: fullRows,
    up: ['ALTER TABLE "t" RENAME TO "s";\n'],
    never: /DROP|data-loss|ADD/,
  }),
  "of a table and its columns, with a change of type": go(
    full("t", "a", "r", { x: pg.integer() }),
    full("s", "b", "q", { y: pg.text(), x: pg.text() }),
    { renames: ["t.a:b", "refers.r:q", "t:s"], rows: fullRows },
  ),
  "of a column, given by its table's new name": go(full("t", "a", "r"), full("s", "b", "r"), {
    renames: ["t:s", "s.a:b"],
    rows: fullRows,
    never: /data-loss/,
  }),
  "of two columns at once": go([ints("a", "b")], [ints("c", "d")], {
    renames: ["t.b:c", "t.a:d"],
    rows: "insert into t values (1, 2)",
    after: { t: [{ c: 2, d: 1 }] },
  }),
  "of a column under a view of every column": go(
    [ints("a"), view("v", "select * from t")],
    [ints("b"), view("v", "select * from t")],
    { renames: ["t.a:b"], rows: "insert into t values (1)" },
  ),
  "of a column with a hyphen that a check mentions": go(
    [table("t", { own: pg.integer("a-b") }, ({ own }) => [pg.check("t_check", raw`${own} <> 1`)])],
    [table("t", { own: pg.integer("c-d") }, ({ own }) => [pg.check("t_check", raw`${own} <> 1`)])],
    { renames: ["t.a-b:c-d"], never: /CHECK/ },
  ),
};

/** Everything is named `name`, or begins with it. */
const everything = (name: string, more: Record<string, Column> = {}) => {
  const kind = pg.pgEnum(`${name} kind`, [name, "b"]);
  const own = table(
    name,
    {
      id: pg.serial(`${name} id`).primaryKey(),
      own: pg.text(name).default(name),
      kind: kind(`${name} kind`),
      count: pg.integer(`${name} n`).generatedAlwaysAsIdentity(),
      ...more,
    },
    (self) => [
      pg.index(`${name} index`).on(self.own, self.kind),
      pg.unique(`${name} unique`).on(self.own, self.kind),
      pg.check(name, raw`${self.own} <> 'nothing'`),
    ],
  );
  const other = table(`${name} other`, { [name]: pg.integer() }, (self) => [
    pg.foreignKey({ name, columns: [self[name]], foreignColumns: [own.id] }),
    pg.index(`${name} `).on(self[name]),
  ]);
  return [
    kind,
    own,
    other,
    pg.pgEnum(`${name} enum`, [name]),
    pg.pgSequence(`${name} sequence`),
    view(`${name} view`, "select 1 as one"),
    pg.pgSchema(name),
  ];
};
const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`;
const names = [
  "order",
  "Group",
  "two  words",
  'a "quoted" one',
  "it's",
  "a;b,c",
  "a--b",
  "ö",
  "a\nb",
  "a.b",
  "$1",
  "\\000a",
  "constructor",
  "toString",
  "a__b",
];

/** Tenants, roles and subscriptions. */
function saas(): unknown[] {
  const role = pg.pgEnum("role", ["owner", "admin", "member"]);
  const plan = pg.pgEnum("plan", ["free", "pro", "enterprise"]);
  const stamps = {
    createdAt: pg.timestamp("created_at", { withTimezone: true }).notNull().defaultNow(),
    updatedAt: pg.timestamp("updated_at", { withTimezone: true, mode: "string" }).notNull().defaultNow(),
  };
  const tenant = pg.pgTable(
    "tenant",
    {
      id: pg.uuid().primaryKey().defaultRandom(),
      slug: pg.varchar({ length: 63 }).notNull().unique(),
      name: pg.text().notNull(),
      plan: plan().notNull().default("free"),
      settings: pg.jsonb().notNull().default({ theme: "light", greeting: "it's you" }),
      ...stamps,
    },
    (self) => [pg.check("tenant_slug", raw`${self.slug} ~ '^[a-z0-9-]+$'`)],
  );
  const member = pg.pgTable(
    "member",
    {
      id: pg.uuid().primaryKey().defaultRandom(),
      tenantId: pg
        .uuid("tenant_id")
        .notNull()
        .references(() => tenant.id, { onDelete: "cascade" }),
      email: pg.text().notNull(),
      roles: role().array().notNull().default(["member"]),
      invitedBy: pg.uuid("invited_by").references((): pg.AnyPgColumn => member.id, { onDelete: "set null" }),
      ...stamps,
    },
    (self) => [
      pg.uniqueIndex("member_email").on(self.tenantId, raw`lower(${self.email})`),
      pg.index().on(self.tenantId, self.createdAt.desc()),
      pg.pgPolicy("own tenant", {
        for: "all",
        using: raw`tenant_id::text = current_setting('app.tenant', true)`,
      }),
    ],
  );
  const usage = pg.pgTable(
    "usage",
    {
      tenantId: pg.uuid("tenant_id").references(() => tenant.id, { onDelete: "cascade" }),
      day: pg.date().notNull(),
      requests: pg.bigint({ mode: "number" }).notNull().default(0),
      price: pg.numeric({ precision: 12, scale: 4 }).notNull().default("0.0001"),
      total: pg.numeric().generatedAlwaysAs(raw`requests * price`),
    },
    (self) => [
      pg.primaryKey({ columns: [self.tenantId, self.day] }),
      pg
        .index("usage_large")
        .on(self.day)
        .where(raw`${self.requests} > 1000`),
    ],
  );
  return [role, plan, tenant, member, usage];
}

/** Composite keys, a schema of its own and views. */
function shop(): unknown[] {
  const shop = pg.pgSchema("shop");
  const status = shop.enum("order_status", ["open", "paid", "sent", "it's back"]);
  const product = shop.table("product", {
    id: pg.integer().primaryKey().generatedAlwaysAsIdentity({ startWith: 1000 }),
    sku: pg.char({ length: 8 }).notNull().unique("sku is unique"),
    title: pg.text().notNull(),
    price: pg.numeric({ precision: 10, scale: 2 }).notNull(),
    tags: pg.text().array().notNull().default([]),
  });
  const variant = shop.table(
    "variant",
    {
      product: pg.integer().references(() => product.id, { onDelete: "cascade" }),
      size: pg.varchar({ length: 4 }),
      colour: pg.text(),
      stock: pg.integer().notNull().default(0),
    },
    (self) => [
      pg.primaryKey({ name: "variant_key", columns: [self.product, self.size, self.colour] }),
      pg.check("stock", raw`${self.stock} >= 0`),
    ],
  );
  const order = shop.table(
    "order",
    {
      number: pg.bigserial({ mode: "number" }).primaryKey(),
      status: status().notNull().default("open"),
      placed: pg
        .timestamp({ precision: 3 })
        .notNull()
        .default(raw`now()`),
    },
    (self) => [
      pg
        .index("open orders")
        .on(self.placed)
        .where(raw`status = 'open'`),
    ],
  );
  const line = shop.table(
    "order line",
    {
      order: pg.bigint({ mode: "number" }).references(() => order.number),
      position: pg.smallint().notNull(),
      product: pg.integer().notNull(),
      size: pg.varchar({ length: 4 }).notNull(),
      colour: pg.text().notNull(),
      amount: pg.integer().notNull().default(1),
    },
    (self) => [
      pg.primaryKey({ columns: [self.order, self.position] }),
      pg.foreignKey({
        columns: [self.product, self.size, self.colour],
        foreignColumns: [variant.product, variant.size, variant.colour],
      }),
    ],
  );
  return [
    shop,
    status,
    ...[line, order, variant, product],
    shop.sequence("invoice", { startWith: 2026001, increment: 1, cache: 1 }),
    shop.view("open_order").as((query) =>
      query
        .select()
        .from(order)
        .where(raw`status = 'open'`),
    ),
    shop
      .materializedView("sales", { product: pg.integer(), sold: pg.bigint({ mode: "number" }) })
      .as(raw`select product, sum(amount) as sold from shop."order line" group by product`),
    shop.view("best", { product: pg.integer() }).as(raw`select product from shop.sales where sold > 10`),
  ];
}

/** A tree of pages, arrays and full text. */
function cms(): unknown[] {
  const state = pg.pgEnum("state", { Draft: "draft", Live: "live", Gone: "gone" } as const);
  const tsvector = pg.customType<{ data: string }>({ dataType: () => "tsvector" });
  const page = pg.pgTable(
    "page",
    {
      id: pg.serial().primaryKey(),
      parent: pg.integer().references((): pg.AnyPgColumn => page.id, { onDelete: "restrict" }),
      path: pg.text().array().notNull(),
      title: pg.text().notNull().default('Untitled "page"'),
      body: pg.text().notNull().default(""),
      state: state().notNull().default("draft"),
      words: tsvector().generatedAlwaysAs(raw`to_tsvector('english', title || ' ' || body)`),
      matrix: pg
        .integer()
        .array()
        .array()
        .default([[1, 2]]),
    },
    (self) => [
      pg.index("page_words").using("gin", self.words),
      pg.index("page_path").using("gin", self.path.op("array_ops")),
      pg.unique().on(self.parent, self.title).nullsNotDistinct(),
      pg.check("no own parent", raw`${self.parent} <> ${self.id}`),
    ],
  );
  const revision = pg.pgTable(
    "page_revision",
    {
      page: pg.integer().notNull(),
      number: pg.integer().notNull(),
      before: pg.integer(),
      content: pg.json().notNull().default([]),
    },
    (self) => [
      pg.primaryKey({ columns: [self.page, self.number] }),
      pg.foreignKey({ columns: [self.page], foreignColumns: [page.id] }).onDelete("cascade"),
      pg.foreignKey({ columns: [self.page, self.before], foreignColumns: [self.page, self.number] }),
    ],
  );
  const menu = pg.pgTable("menu", {
    name: pg.text().primaryKey(),
    pages: pg
      .integer()
      .array()
      .notNull()
      .default(raw`'{}'`),
    constructor: pg.text(),
  });
  return [
    state,
    page,
    revision,
    menu,
    pg.pgView("live_page").as((query) =>
      query
        .select({ id: page.id, title: page.title })
        .from(page)
        .where(raw`state = 'live'`),
    ),
  ];
}

const schemas: Record<string, Change> = {
  "tenants, roles and usage": go([], saas(), {
    others: `insert into tenant (slug, name) values ('a', 'A');
      insert into member (tenant_id, email) select id, 'x@y' from tenant;
      insert into usage (tenant_id, day) select id, '2026-01-01' from tenant`,
  }),
  "a shop": go([], shop(), {
    others: `insert into shop.product (sku, title, price) values ('12345678', 'Shirt', 9.99);
      insert into shop.variant values (1000, 'M', 'red', 3);
      insert into shop."order" default values;
      insert into shop."order line" values (1, 1, 1000, 'M', 'red')`,
  }),
  "a content management system": go([], cms(), {
    others: `insert into page (path) values ('{}'); insert into page (parent, path) values (1, '{a,b}');
      insert into page_revision values (1, 1, null), (1, 2, 1); insert into menu values ('main', '{1,2}', 'c')`,
  }),
};

const cases: [string, Change][] = [
  ...Object.entries({
    ...tables,
    ...columns,
    ...enums,
    ...constraints,
    ...others,
    ...generated,
    ...identities,
    ...schemas,
    ...concurrently,
  }),
  ...ring(defaults).map(([name, from, to]): [string, Change] => [`default: ${name}`, go([t(from)], [t(to)])]),
  ...typeChanges.map(([name, from, to, more]): [string, Change] => [
    `type: ${name}`,
    go([t(from)], [t(to)], { ...more }),
  ]),
  ...ring(indexes).map(([name, from, to]): [string, Change] => [
    `index: ${name}`,
    go([t(pg.text(), from)], [t(pg.text(), to)]),
  ]),
  ...Object.entries(renames).map(([name, change]): [string, Change] => [`a rename ${name}`, change]),
  ...Object.entries(numbers).flatMap(([from, before]) =>
    Object.entries(numbers)
      .filter(([to]) => to !== from)
      .map(([to, after]): [string, Change] => [
        `${from} to ${to}`,
        go([table("t", { n: before(), note: pg.text() })], [table("t", { n: after(), note: pg.text() })], {
          rows:
            from === "integer" ? "insert into t values (1), (2)" : "insert into t (note) values ('a'), ('b')",
          never: /data-loss/,
          finally: to === "integer" ? "" : "insert into t (note) values ('next')",
        }),
      ]),
  ),
  ...names.map((name): [string, Change] => [
    `names like ${JSON.stringify(name)}`,
    go(everything(name), everything(name, { more: pg.integer("more") }), {
      rows: `insert into ${quoted(name)} (${quoted(name)}, ${quoted(`${name} kind`)}) values ('x', 'b')`,
    }),
  ]),
  ...["constructor", "toString", "__proto__"].flatMap((name): [string, Change][] => {
    const used = table("t", { id: id(), c: pg.pgEnum(name, [name])() });
    return [
      [`a table ${name}`, go([], [table(name, { id: id(), c: pg.text() })])],
      [`an enum ${name}`, go([bare()], [pg.pgEnum(name, [name]), used])],
      [`a sequence ${name}`, go([], [pg.pgSequence(name)])],
      [`a view ${name}`, go([t()], [t(), view(name, "select id from t")])],
    ];
  }),
  ...["constructor", "toString"].flatMap((name): [string, Change][] => {
    const indexed = t(pg.text(), ({ c }) => [pg.index(name).on(c), pg.check(name, raw`c <> 'x'`)]);
    const primary = table("t", { id: pg.integer(), c: pg.text() }, ({ id, c }) => [
      pg.primaryKey({ name, columns: [id, c] }),
    ]);
    return [
      [`an index and a check ${name}`, go([t()], [indexed])],
      [`a primary key ${name}`, go([keyed()], [primary])],
    ];
  }),
  ...names.flatMap((name): [string, Change][] => [
    [
      `everything named like ${JSON.stringify(name)}`,
      go([], everything(name), { down: ["-- svc: data-loss table "] }),
    ],
    [`a column named ${JSON.stringify(name)}`, go([bare()], [table("t", { id: id(), c: pg.text(name) })])],
  ]),
];

/** Each entry with the next. */
function ring<T>(all: Record<string, T>): [string, T, T][] {
  const entries = Object.entries(all);
  return entries.map(([name, from], at) => {
    const [next, to] = entries[(at + 1) % entries.length]!;
    return [`${name} to ${next}`, from, to];
  });
}

/** Rows for a table t of numbers and texts, if there is one. */
function rowsFor(things: unknown[]): string {
  const tables = things.filter((thing) => is(thing, pg.PgTable)).map((thing) => pg.getTableConfig(thing));
  const columns = tables.find(({ name, schema }) => name === "t" && !schema)?.columns ?? [];
  const isPlain = columns.every((it) => /^Pg(Integer|Text)$/.test(it.columnType) && !it.generatedIdentity);
  if (columns[0]?.name !== "id" || !isPlain) return columns[0]?.name === "id" ? ids : "";
  return columns.filter(({ generated }) => !generated).length === 2 ? seeded : ids;
}

test.each(cases)("%s", async (_, change) => {
  const { from, to, rows = rowsFor(from), others = rowsFor(to), renames: stated = [], ...expected } = change;
  const steps = await trip(from, to, { seed: rows, renames: stated.map(parseRename) });
  for (const text of expected.up ?? []) expect(steps.up).toContain(text);
  for (const text of expected.down ?? []) expect(steps.down).toContain(text);
  const firstLines = steps.parts.map(({ up }) =>
    up
      .split("\n")
      .slice(0, up.startsWith("-- svc: no-t") ? 2 : 1)
      .join(" "),
  );
  if (expected.parts) expect(firstLines).toEqual(expected.parts);
  if (expected.never) expect(steps.up + steps.down).not.toMatch(expected.never);
  expect(steps.irreversible).toBe(expected.irreversible);
  if (expected.after) expect(steps.rows.up).toEqual(expected.after);
  const isLossless = !/data-loss/.test(steps.up);
  if (expected.back || (isLossless && !steps.irreversible))
    expect(steps.rows.down).toEqual(expected.back ?? steps.rows.before);
  if (expected.finally) await sql().unsafe(expected.finally);
  if (stated.length === 0) await trip(to, from, { seed: others });
});

test("a default is what was written", async () => {
  const texts = ["it's", "b", 'say "so"', "a\\b", "", "NULL", "{}"];
  const at = new Date("2026-01-02T23:30:00Z");
  const made = table("t", {
    id: id(),
    json: pg.jsonb().default({ a: "it's", b: ["''"] }),
    texts: pg.text().array().default(texts),
    day: pg.date({ mode: "date" }).default(at),
    local: pg.timestamp().default(at),
    zoned: pg.timestamp({ withTimezone: true }).array().default([at, at]),
  });
  await trip([], [made]);
  await sql()`insert into t (id) values (1)`;
  const found = sql()`select json, texts, day::text, local::text, zoned[2] as zoned from t`;
  expect([...(await found)]).toEqual([
    { json: { a: "it's", b: ["''"] }, texts, day: "2026-01-02", local: "2026-01-02 23:30:00", zoned: at },
  ]);
});

test("a NOT NULL column comes back NOT NULL if its table is empty", async () => {
  const { down } = await trip([t(pg.text().notNull())], [bare()]);
  await sql().unsafe(down);
  const found = sql()`select attnotnull from pg_attribute where attname = 'c' and attrelid = 't'::regclass`;
  expect([...(await found)]).toEqual([{ attnotnull: true }]);
});

test("without a change, or only in how an index is built, there is nothing to do", async () => {
  const indexed = (build: (it: pg.IndexBuilder) => pg.IndexBuilder) =>
    t(pg.text(), ({ c }) => [build(pg.index("t_i").on(c))]);
  expect(await between([t()], [t()])).toMatchObject({ changed: false, up: "", down: "" });
  const [plain, built] = [indexed((it) => it), indexed((it) => it.concurrently())];
  expect((await between([plain], [built])).changed).toBe(false);
});
