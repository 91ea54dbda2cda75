import { describe, expect, test } from "bun:test";
import { sql as pgSql } from "drizzle-orm";
import * as pg from "drizzle-orm/pg-core";
import { tripDatabase } from "../../tests/support/database/round_trip.ts";

const { trip, sql } = tripDatabase();

const id = () => pg.integer().primaryKey();
/** A table t with the column c. */
const t = (c: pg.PgColumnBuilderBase) => pg.pgTable("t", { id: id(), c });

describe("the cases listed in database.md under Down", () => {
  test("dropping a NOT NULL column", async () => {
    const [before, after] = [t(pg.text().notNull()), pg.pgTable("t", { id: id() })];
    const { up, down, rows } = await trip([before], [after], "insert into t values (1, 'a')");
    expect(up).toBe('-- svc: data-loss column t.c\nALTER TABLE "t" DROP COLUMN "c";\n');
    expect(down).toContain("-- Look here: the values of t.c are gone, existing rows get NULL");
    expect(rows.down).toEqual({ t: [{ id: 1, c: null }] });
  });

  test("dropping a NOT NULL column of an empty table: it comes back NOT NULL", async () => {
    const { down } = await trip([t(pg.text().notNull())], [pg.pgTable("t", { id: id() })]);
    await sql().unsafe(down);
    expect([...(await sql()`select attnotnull from pg_attribute where attname = 'c'`)]).toEqual([
      { attnotnull: true },
    ]);
  });

  test("dropping a NOT NULL column that has a default: rows get the default", async () => {
    const [before, after] = [t(pg.integer().notNull().default(7)), pg.pgTable("t", { id: id() })];
    const { down, rows } = await trip([before], [after], "insert into t values (1, 3)");
    expect(down).toBe('ALTER TABLE "t" ADD COLUMN "c" integer DEFAULT 7 NOT NULL;\n');
    expect(rows.down).toEqual({ t: [{ id: 1, c: 7 }] });
  });

  test("dropping a unique column with a default: rows get NULL, because the default would not be unique", async () => {
    const [before, after] = [t(pg.integer().notNull().default(7).unique()), pg.pgTable("t", { id: id() })];
    const { rows } = await trip([before], [after], "insert into t values (1, 3), (2, 4)");
    expect(rows.down).toEqual({
      t: [
        { id: 1, c: null },
        { id: 2, c: null },
      ],
    });
  });

  test("dropping a column of the primary key: irreversible", async () => {
    const other = pg.pgTable("t", { c: pg.text().primaryKey() });
    const { down, irreversible } = await trip(
      [t(pg.text().notNull())],
      [other],
      "insert into t values (1, 'a')",
    );
    expect(down).toBe("-- svc: irreversible the values of t.id are gone, and the primary key needs them\n");
    expect(irreversible).toBe("the values of t.id are gone, and the primary key needs them");
  });

  test("int to text, USING both ways", async () => {
    const { up, down } = await trip(
      [t(pg.integer().default(1))],
      [t(pg.text().default("x"))],
      "insert into t values (1, 42)",
    );
    expect(up).toContain('SET DATA TYPE text USING "c"::text;');
    expect(down).toContain('SET DATA TYPE integer USING "c"::text::integer;');
    expect(up + down).not.toContain("data-loss");
  });

  test("text to int", async () => {
    const { up } = await trip(
      [t(pg.text().default("1"))],
      [t(pg.integer().default(2))],
      "insert into t values (1, '42')",
    );
    expect(up).toContain("-- Look here: t.c fails on text that is not a valid integer\n");
  });

  test("text to text[]", async () => {
    const [before, after] = [t(pg.text().default("x")), t(pg.text().array().default(["y"]))];
    const { rows } = await trip(
      [before],
      [after],
      "insert into t values (1, 'a,b'), (2, null), (3, ''), (4, '{}')",
    );
    expect(rows.up.t).toContainEqual({ id: 1, c: ["a,b"] });
    expect(rows.down).toEqual(rows.before);
  });

  test("text[] to text", async () => {
    const seed = `insert into t values (1, '{"a,b",c}'), (2, null), (3, '{}'), (4, '{null}')`;
    const { rows, up } = await trip([t(pg.text().array())], [t(pg.text())], seed);
    expect(up).not.toContain("data-loss");
    expect(rows.down).toEqual(rows.before);
  });

  const mood = (...values: [string, ...string[]]) => pg.pgEnum("mood", values);

  test("removing an unused enum value", async () => {
    const [all, some] = [mood("good", "so so", "bad"), mood("bad", "good")];
    const before = [
      all,
      t(all().notNull().default("good")),
      pg.pgTable("u", { list: all().array().default(["bad"]) }),
    ];
    const after = [
      some,
      t(some().notNull().default("bad")),
      pg.pgTable("u", { list: some().array().default([]) }),
    ];
    const seed = "insert into t values (1, 'bad'); insert into u values ('{good,bad}')";
    const { up, rows } = await trip(before, after, seed);
    expect(up).toContain(`-- svc: data-loss column t.c where "c"::text IN ('so so') -- value 'so so'\n`);
    expect(rows.down).toEqual(rows.before);
  });

  test("removing a used enum value: rows get NULL, the default, or the value before it", async () => {
    const [all, some] = [mood("awful", "bad", "good"), mood("awful", "good")];
    const before = pg.pgTable("t", {
      id: id(),
      free: all(),
      fixed: all().notNull(),
      usual: all().notNull().default("good"),
      list: all().array(),
    });
    const after = pg.pgTable("t", {
      id: id(),
      free: some(),
      fixed: some().notNull(),
      usual: some().notNull().default("good"),
      list: some().array(),
    });
    const seed =
      "insert into t values (1, 'bad', 'bad', 'bad', '{good,bad}'), (2, 'good', 'good', 'awful', '{}')";
    const { up, rows } = await trip([all, before], [some, after], seed);
    expect(up).toContain(`USING (CASE "free"::text WHEN 'bad' THEN NULL ELSE "free"::text END)::"mood";`);
    expect(up).toContain(
      `-- svc: data-loss column t.list where "list"::text[] && ARRAY['bad'] -- value 'bad'\n`,
    );
    expect(rows.up).toEqual({
      t: [
        { id: 1, free: null, fixed: "awful", usual: "good", list: ["good"] },
        { id: 2, free: "good", fixed: "good", usual: "awful", list: [] },
      ],
    });
  });

  test("adding enum values at any position", async () => {
    const [some, more] = [mood("c", "f"), mood("a", "b", "c", "d", "e", "f", "it's")];
    const { up } = await trip([some, t(some())], [more, t(more())], "insert into t values (1, 'c')");
    expect(up).toContain("ADD VALUE 'it''s'");
  });

  test("adding an enum value and using it as a default in the same revision", async () => {
    const [some, more] = [mood("good"), mood("good", "new")];
    const indexed = (type: typeof some | typeof more, value: string) =>
      pg.pgTable("t", { id: id(), c: type().default(value as "good") }, (table) => [
        pg.index("t_c").on(table.c),
        pg.check("t_c_known", pgSql`c <> 'good' or id > 0`),
      ]);
    const { up } = await trip(
      [some, indexed(some, "good")],
      [more, indexed(more, "new")],
      "insert into t values (1, 'good')",
    );
    // A value added by ADD VALUE could not be used in this transaction.
    expect(up).not.toContain("ADD VALUE");
  });

  const number = (column: pg.PgColumnBuilderBase) => pg.pgTable("t", { n: column, note: pg.text() });
  const numbers = {
    integer: () => number(pg.integer().primaryKey()),
    serial: () => number(pg.serial().primaryKey()),
    "big serial": () => number(pg.bigserial({ mode: "number" }).primaryKey()),
    identity: () => number(pg.integer().primaryKey().generatedAlwaysAsIdentity()),
    "identity by default from 100": () =>
      number(
        pg
          .bigint({ mode: "number" })
          .primaryKey()
          .generatedByDefaultAsIdentity({ startWith: 100, increment: 5 }),
      ),
  };
  for (const [from, before] of Object.entries(numbers)) {
    for (const [to, after] of Object.entries(numbers)) {
      if (from === to) continue;
      test(`${from} to ${to}: the next number is unused`, async () => {
        const seed =
          from === "integer" ? "insert into t values (1), (2)" : "insert into t (note) values ('a'), ('b')";
        const { rows } = await trip([before()], [after()], seed);
        expect(rows.down).toEqual(rows.before);
        if (to !== "integer") await sql()`insert into t (note) values ('next')`;
      });
    }
  }

  test("serial to text drops the sequence", async () => {
    const [before, after] = [
      pg.pgTable("t", { n: pg.serial() }),
      pg.pgTable("t", { n: pg.text().default("x") }),
    ];
    await trip([before], [after], "insert into t values (1), (2)");
  });

  test("dropping a referenced table, also with circular references", async () => {
    const b = (): pg.AnyPgColumn => tables.b.id;
    const tables = {
      a: pg.pgTable("a", { id: id(), b: pg.integer().references(b) }),
      b: pg.pgTable("b", {
        id: id(),
        a: pg.integer().references((): pg.AnyPgColumn => tables.a.id),
        self: pg.integer().references(b),
      }),
    };
    const c = pg.pgTable("c", { id: id(), a: pg.integer().references(() => tables.a.id) });
    const left = pg.pgTable("c", { id: id(), a: pg.integer() });
    const seed =
      "insert into a values (1); insert into b values (1, 1, 1); insert into c values (1, 1), (2, null)";
    const { up, down, rows } = await trip([tables.a, tables.b, c], [left], seed);
    expect(up).toContain('-- svc: data-loss table a\nDROP TABLE "a";\n');
    expect(up).not.toContain("CASCADE");
    expect(down).toContain("NOT VALID");
    expect(rows.down).toEqual({ a: [], b: [], c: rows.before.c! });
    await trip([tables.a, tables.b], []);
  });
});
