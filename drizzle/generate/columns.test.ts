import { describe, expect, test } from "bun:test";
import { sql as raw } from "drizzle-orm";
import * as pg from "drizzle-orm/pg-core";
import { tripDatabase } from "../../tests/support/database/round_trip.ts";

const { trip, sql, between } = tripDatabase();

const id = () => pg.integer().primaryKey();
/** A table t with the column c. */
const t = (c: pg.PgColumnBuilderBase = pg.text()) => pg.pgTable("t", { id: id(), c });
const rows = "insert into t values (1, '1'), (2, '2')";

describe("columns", () => {
  test("a default is added, changed and dropped, also along with the type", async () => {
    const defaults = [
      t(pg.text()),
      t(pg.text().default("it's;--")),
      t(pg.text().default(raw`upper('x')`)),
      t(pg.varchar({ length: 9 }).default("")),
      t(pg.integer().default(0)),
      t(pg.numeric().default("1.5")),
    ];
    for (const [at, from] of defaults.entries())
      await trip([from], [defaults[(at + 1) % defaults.length]], rows);
  });

  test("defaults with quotes in JSON and in arrays", async () => {
    const before = t(pg.jsonb().default({ a: "it's", b: ["''"] }));
    const array = ["it's", "b", 'say "so"', "a\\b", "", "NULL", "{,}"];
    const after = t(pg.text().array().default(array));
    await trip([], [before]);
    await sql()`insert into t (id) values (3)`;
    expect([...(await sql()`select c from t`)]).toEqual([{ c: { a: "it's", b: ["''"] } }]);
    await trip([], [after]);
    await sql()`insert into t (id) values (3)`;
    expect([...(await sql()`select c from t`)]).toEqual([{ c: array }]);
  });

  test("date defaults, also in arrays", async () => {
    const at = new Date("2026-01-02T23:30:00Z");
    const table = pg.pgTable("t", {
      id: id(),
      day: pg.date({ mode: "date" }).default(at),
      local: pg.timestamp().default(at),
      zoned: pg.timestamp({ withTimezone: true }).array().default([at, at]),
    });
    await trip([], [table]);
    await sql()`insert into t (id) values (1)`;
    const shown = sql()`select day::text, local::text, zoned[1] as first, zoned[2] as second from t`;
    expect([...(await shown)]).toEqual([
      { day: "2026-01-02", local: "2026-01-02 23:30:00", first: at, second: at },
    ]);
  });

  test("NOT NULL is added and dropped, with a note where it may fail", async () => {
    const { up, down } = await trip([t()], [t(pg.text().notNull())], rows);
    expect(up).toContain("-- Look here: fails while a row holds NULL in t.c: fill those rows first\n");
    expect(down).toBe('ALTER TABLE "t" ALTER COLUMN "c" DROP NOT NULL;\n');
  });

  test("a NOT NULL column without a default carries a note that it fails if the table has rows", async () => {
    const { up } = await trip([pg.pgTable("t", { id: id() })], [t(pg.text().notNull())]);
    expect(up).toContain("-- Look here: fails while t has rows: give c a default");
  });

  test("a serial or identity column is dropped, and comes back with numbers", async () => {
    const without = pg.pgTable("t", { id: id() });
    const seed = "insert into t (id) values (1), (2)";
    for (const counting of [pg.serial().unique(), pg.integer().generatedAlwaysAsIdentity().unique()]) {
      const { rows } = await trip([t(counting)], [without], seed);
      expect(rows.down.t?.map(({ c }) => c)).toEqual([1, 2]);
    }
    await trip(
      [
        t(
          pg
            .uuid()
            .notNull()
            .unique()
            .default(raw`gen_random_uuid()`),
        ),
      ],
      [without],
      seed,
    );
  });

  test("narrowing varchar and numeric marks the values that are truncated or rounded", async () => {
    const narrow = await between([t(pg.varchar({ length: 9 }))], [t(pg.varchar({ length: 5 }))]);
    expect(narrow.up).toContain(
      `-- svc: data-loss column t.c where ("c"::varchar(5))::varchar(9) IS DISTINCT FROM "c" -- values longer than 5 characters
ALTER TABLE "t" ALTER COLUMN "c" SET DATA TYPE varchar(5) USING "c"::varchar(5);`,
    );
    expect(narrow.down).not.toContain("data-loss");
    const blanks = await between([t(pg.text())], [t(pg.char({ length: 5 }))]);
    expect(blanks.up).toContain("-- values longer than 5 characters, blanks at the end\n");
    const element = await between(
      [t(pg.numeric({ precision: 9, scale: 4 }))],
      [t(pg.numeric({ precision: 9, scale: 2 }).array())],
    );
    expect(element.up).toContain('where "c"::numeric(9, 2) IS DISTINCT FROM "c" -- values that do not fit\n');
    const rounded = await between(
      [t(pg.numeric({ precision: 9, scale: 4 }))],
      [t(pg.numeric({ precision: 9, scale: 2 }))],
    );
    expect(rounded.up).toMatch(/^-- svc: data-loss column t\.c where .+ -- digits, by rounding$/m);
    expect(rounded.down).not.toContain("data-loss");
    const seed = "insert into t values (1, 'short'), (2, 'too long')";
    const there = await trip([t(pg.varchar({ length: 9 }))], [t(pg.varchar({ length: 5 }))], seed);
    expect(there.rows.up.t).toMatchObject([{ c: "short" }, { c: "too l" }]);
    await trip(
      [t(pg.text().array())],
      [t(pg.varchar({ length: 3 }).array())],
      "insert into t values (1, '{abcd}')",
    );
    await trip(
      [t(pg.integer().array())],
      [t(pg.varchar({ length: 3 }).array())],
      "insert into t values (1, '{12}')",
    );
  });

  test("timestamps with and without time zone keep the same instant in any session time zone", async () => {
    const seed = "set timezone = 'Asia/Tokyo'; insert into t values (1, '2026-01-01 12:00')";
    const there = await trip([t(pg.timestamp())], [t(pg.timestamp({ withTimezone: true }))], seed);
    expect(there.rows.down).toEqual(there.rows.before);
    await sql()`reset timezone`;
  });

  test.each([true, false])(
    "a timestamp loses digits when its time zone changes (from one: %p)",
    async (zoned) => {
      const at = (withTimezone: boolean, precision: 3 | 6) => t(pg.timestamp({ precision, withTimezone }));
      const seed = "insert into t values (1, '2026-01-01 12:00:00.123456')";
      const { up } = await trip([at(zoned, 6)], [at(!zoned, 3)], seed);
      const type = zoned ? "timestamptz" : "timestamp";
      expect(up).toContain(
        `data-loss column t.c where "c"::${type}(3) <> "c" -- values that change, by rounding\n`,
      );
    },
  );

  test("an array of an enum becomes the enum, and the reverse, also if its values change", async () => {
    const [some, more] = [pg.pgEnum("kind", ["a", "b"]), pg.pgEnum("kind", ["b", "new", "a"])];
    const [list, one] = [
      [some, t(some().array())],
      [more, t(more())],
    ];
    const there = await trip(list, one, "insert into t values (1, '{b}'), (2, null)");
    expect(there.rows.down).toEqual(there.rows.before);
    await trip(one, list, "insert into t values (1, 'b'), (2, null)");
    const { up } = await between(one, list);
    expect(up).toContain("-- Look here: t.c fails on 'new'\n");
  });

  test("generated columns are added, changed, made plain, and follow a type change of their source", async () => {
    const made = (as: string, c: pg.PgColumnBuilderBase = pg.integer()) =>
      pg.pgTable("t", { id: id(), c, g: pg.integer().generatedAlwaysAs(raw.raw(as)) }, (self) => [
        pg.index("t_g").on(self.g as never),
        pg.unique("g_u").on(self.g as never),
      ]);
    const plain = pg.pgTable("t", { id: id(), c: pg.integer(), g: pg.integer() });
    const { up } = await trip([made("c + 1")], [made("c + 2")], rows);
    expect(up).not.toContain("data-loss");
    await trip([made("c + 1")], [plain], rows);
    await trip([plain], [made("c + 1")], rows);
    await trip([made("c + 1")], [made("length(c)", pg.text())], "insert into t values (1, 1), (2, 22)");
    await trip([made("c + 1")], [pg.pgTable("t", { id: id() })], rows);
  });

  test("a key's column that becomes generated carries notes on what may fail, in both directions", async () => {
    const tables = (g: pg.PgColumnBuilderBase) => {
      const base = pg.pgTable("t", { id: id(), g }, (self) => [
        pg.unique("g_u").on(self.g as never),
        pg.uniqueIndex("g_i").on(self.g as never),
      ]);
      const refers = pg.pgTable("u", { g: pg.integer() }, (self) => [
        pg.foreignKey({ columns: [self.g], foreignColumns: [base.g as never], name: "u_fk" }),
      ]);
      return [base, refers];
    };
    const plain = tables(pg.integer());
    const generated = tables(pg.integer().generatedAlwaysAs(raw`id % 100`));
    const warnings = [
      "-- Look here: fails while two rows of t are the same in g_u\n",
      "-- Look here: fails while two rows of t are the same in g_i\n",
      "-- Look here: fails while a row of u refers to nothing in t\n",
    ];
    const there = await between(plain, generated);
    const back = await between(generated, plain);
    for (const warning of warnings) {
      expect(there.up).toContain(warning);
      expect(back.down).toContain(warning);
    }
    for (const text of [there.down, back.up]) expect(text).not.toContain("Look here");
    const same = await trip(generated, plain, "insert into t (id) values (1), (2); insert into u values (1)");
    expect(same.rows.down).toEqual(same.rows.before);
  });

  test("identity options change, even if the current value is outside the new bounds", async () => {
    const n = (options: pg.PgSequenceOptions & { name?: string }, always = true) => {
      const column = pg.integer();
      return pg.pgTable("t", {
        id: always ? column.generatedAlwaysAsIdentity(options) : column.generatedByDefaultAsIdentity(options),
        c: pg.text(),
      });
    };
    const seed = "insert into t (c) values ('a'), ('b')";
    await trip([n({})], [n({ increment: 5, cache: 10, cycle: true }, false)], seed);
    await trip([n({})], [n({ minValue: 100, startWith: 100, maxValue: 200 })], seed);
    await sql()`insert into t (c) values ('c')`;
    await trip([n({})], [n({ name: "other" })], seed);
  });

  test("a column whose name contains another column's name is not confused with it", async () => {
    const before = pg.pgTable("t", { a: pg.integer(), aa: pg.integer() }, () => [pg.check("k", raw`aa > 0`)]);
    const after = pg.pgTable("t", { a: pg.text(), aa: pg.integer() }, () => [pg.check("k", raw`aa > 0`)]);
    expect((await trip([before], [after], "insert into t values (1, 1)")).up).not.toContain("CONSTRAINT");
  });

  test("type aliases: custom types, bits, enums whose names start like a type", async () => {
    const custom = (type: string) => pg.customType<{ data: string }>({ dataType: () => type });
    const kind = pg.pgEnum("text_kind", ["a", "b"]);
    const odd = pg.pgEnum('Odd "name"', ["a", "it's"]);
    const table = pg.pgTable("t", {
      id: id(),
      search: custom("tsvector")(),
      wide: custom("character varying(20)")(),
      at: pg.timestamp({ precision: 3, withTimezone: true }).array(),
      span: pg.interval({ fields: "day to second", precision: 3 }),
      bits: pg.bit({ dimensions: 3 }),
      kind: kind().default("a"),
      odd: odd().array().default(["it's"]),
      bytes: custom("bytea")().default(raw`'\\x00'`),
    });
    await trip([], [kind, odd, table]);
    await trip([pg.pgTable("t", { id: id() })], [kind, odd, table], "insert into t values (1)");
  });

  test("names that need quoting", async () => {
    const name = `a "b";c,d--'e' $1 ü`;
    const other = pg.pgTable(`${name}2`, { [name]: pg.integer().primaryKey() });
    const [type, moved] = [["x"], ["y"]].map((values) => pg.pgEnum(`${name} enum`, values as [string]));
    const table = (column: pg.PgColumnBuilderBase) =>
      pg.pgTable(
        name,
        {
          [name]: pg.integer().generatedAlwaysAsIdentity().primaryKey(),
          c: column,
          kind: type!(),
          ref: pg.integer(),
        },
        (self) => [
          pg.index(`${name} i`).on(self[name] as never, self.c as never),
          pg.unique(`${name} u`).on(self.c as never, self[name] as never),
          pg.check(`${name} k`, raw`c is not null or true`),
          pg.foreignKey({
            name: `${name} f`,
            columns: [self.ref as never],
            foreignColumns: [other[name] as never],
          }),
        ],
      );
    await trip([type, other, table(pg.integer())], [type, other, table(pg.text())]);
    await trip([], [type, other, table(pg.integer())]);
    const { up } = await trip([type, other, table(pg.integer())], [moved]);
    expect(up).toContain(`-- svc: data-loss table "a ""b"";c,d--'e' $1 ü"\n`);
  });
});
