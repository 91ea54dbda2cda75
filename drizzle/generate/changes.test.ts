import { describe, expect, test } from "bun:test";
import { sql as raw } from "drizzle-orm";
import * as pg from "drizzle-orm/pg-core";
import { tripDatabase } from "../../tests/support/database/round_trip.ts";

const { trip, between, sql } = tripDatabase();

const id = () => pg.integer().primaryKey();
type Extra = (self: {
  id: pg.ExtraConfigColumn & pg.AnyPgColumn;
  c: pg.ExtraConfigColumn & pg.AnyPgColumn;
}) => pg.PgTableExtraConfigValue[];
/** A table t with the column c. */
const t = (c: pg.PgColumnBuilderBase = pg.text(), extra: Extra = () => []) =>
  pg.pgTable("t", { id: id(), c }, (self) => extra(self as never));
const rows = "insert into t values (1, '1'), (2, '2')";

describe("keys and constraints", () => {
  test("the primary key moves from one column to another, and references follow", async () => {
    const refers = (table: { id: pg.AnyPgColumn }) =>
      pg.pgTable("u", { t: pg.integer().references(() => table.id) });
    const before = pg.pgTable("t", { id: pg.integer().primaryKey(), c: pg.integer().notNull() });
    const after = pg.pgTable("t", { id: pg.integer().notNull().unique(), c: pg.integer().primaryKey() });
    const both = await trip(
      [before, refers(before)],
      [after, refers(after)],
      `${rows}; insert into u values (1)`,
    );
    expect(both.rows.down).toEqual(both.rows.before);
  });

  test("a composite primary key is created, changed and dropped", async () => {
    const keyed = (...columns: ("id" | "c")[]) =>
      pg.pgTable("t", { id: pg.integer(), c: pg.integer() }, (self) => {
        const [first, ...others] = columns.map((name) => self[name]);
        return first ? [pg.primaryKey({ columns: [first, ...others] })] : [];
      });
    await trip([keyed()], [keyed("id", "c")], rows);
    await trip([keyed("id", "c")], [keyed("c", "id")], rows);
    await trip([keyed("id", "c")], [keyed("c")], rows);
    await trip([keyed("c")], [t(pg.integer())], rows);
  });

  test("a unique constraint that repeats the primary key comes and goes without it", async () => {
    const repeated = pg.pgTable("t", { id: id().unique(), c: pg.text().unique("one") }, (self) => [
      pg.unique("two").on(self.c),
    ]);
    const { up } = await trip([repeated], [t()], rows);
    expect(up).not.toContain("t_pkey");
    const keys = sql()`select conname from pg_constraint where contype = 'p' and conrelid = 't'::regclass`;
    expect([...(await keys)]).toEqual([{ conname: "t_pkey" }]);
  });

  test("unique and check constraints change under the same name", async () => {
    const one = t(pg.text(), ({ c }) => [
      pg.unique("t_u").on(c),
      pg.check("t_k", raw`length(c) < 5 and c <> 'a;b'`),
    ]);
    const two = t(pg.text(), ({ id, c }) => [
      pg.unique("t_u").on(c, id).nullsNotDistinct(),
      pg.check("t_k", raw`length(c) < 6`),
    ]);
    const { up } = await trip([one], [two], rows);
    expect(up).toContain("-- Look here: fails while a row of t breaks t_k\n");
  });

  test("a foreign key changes its actions, and its target", async () => {
    const target = (name: string) => pg.pgTable(name, { id: id() });
    const [a, b] = [target("a"), target("b")];
    const from = t(pg.integer().references(() => a.id, { onDelete: "cascade" }));
    const other = t(pg.integer().references(() => a.id, { onDelete: "set null", onUpdate: "cascade" }));
    const elsewhere = t(pg.integer().references(() => b.id));
    const seed = `insert into a values (1), (2); insert into b values (1), (2); ${rows}`;
    await trip([a, b, from], [a, b, other], seed);
    await trip([a, b, from], [a, b, elsewhere], seed);
  });

  test("a column with a self-referencing foreign key changes its type", async () => {
    const self = (column: () => pg.PgColumnBuilderBase) => {
      const table: pg.AnyPgTable & { id: pg.AnyPgColumn } = pg.pgTable(
        "t",
        { id: column(), c: column() },
        (its) => [
          pg.unique().on(its.id as never),
          pg.foreignKey({ columns: [its.c as never], foreignColumns: [its.id as never] }),
        ],
      ) as never;
      return table;
    };
    await trip([self(() => pg.integer())], [self(() => pg.text())], "insert into t values (1, 1), (2, 1)");
  });

  test("dropping a column with a NULLS NOT DISTINCT constraint is irreversible", async () => {
    const unique = t(pg.text(), ({ c }) => [pg.unique("t_u").on(c).nullsNotDistinct()]);
    const { irreversible } = await trip([unique], [pg.pgTable("t", { id: id() })], rows);
    expect(irreversible).toBe("the values of t.c are gone, and t_u allows only one row without a value");
  });
});

describe("indexes", () => {
  test("expression, order, condition, method and options change under the same name", async () => {
    const indexes: Extra[] = [
      ({ c }) => [pg.index("t_i").on(c)],
      ({ c }) => [pg.index("t_i").on(c.desc().nullsLast())],
      () => [pg.index("t_i").on(raw`lower(c)`, raw`(c || ';--')`)],
      ({ c }) => [
        pg
          .index("t_i")
          .on(c.op("text_pattern_ops"))
          .where(raw`c <> 'a;b'`),
      ],
      ({ c }) => [pg.uniqueIndex("t_i").using("btree", c).with({ fillfactor: "70" })],
      ({ c }) => [pg.index("t_i").using("hash", c)],
      () => [],
    ];
    for (const [at, from] of indexes.entries()) {
      const to = indexes[(at + 1) % indexes.length]!;
      await trip([t(pg.text(), from)], [t(pg.text(), to)], rows);
    }
  });

  test("an operator class keeps a column's sort order", async () => {
    const indexed = t(pg.text(), ({ c }) => [
      pg.index("t_i").on(c.desc().nullsFirst().op("text_pattern_ops")),
    ]);
    expect((await trip([t()], [indexed], rows)).up).toContain('("c" text_pattern_ops DESC NULLS FIRST);');
  });

  test("CONCURRENTLY is alone in its file, and omitted on a new table", async () => {
    const indexed = t(pg.text(), ({ c }) => [pg.index("t_i").on(c).concurrently()]);
    const { up, down } = await trip([t()], [indexed], rows);
    expect(up).toBe('-- svc: no-transaction\nCREATE INDEX CONCURRENTLY "t_i" ON "t" USING btree ("c");\n');
    expect(down).toBe('-- svc: no-transaction\nDROP INDEX CONCURRENTLY "t_i";\n');
    const dropped = await trip([indexed], [t()], rows);
    expect([dropped.up, dropped.down]).toEqual([down, up]);
    expect((await trip([], [indexed])).up).not.toContain("CONCURRENTLY");
    const flag = t(pg.text(), ({ c }) => [pg.index("t_i").on(c)]);
    expect((await between([flag], [indexed])).changed).toBe(false);
  });
});

describe("what runs CONCURRENTLY gets revisions of its own", () => {
  const table = (columns: readonly string[], more: Extra = () => []) =>
    pg.pgTable("t", { id: id(), ...Object.fromEntries(columns.map((name) => [name, pg.text()])) }, (self) => [
      ...columns.map((name) => {
        const column = (self as unknown as Record<string, pg.ExtraConfigColumn>)[name]!;
        return pg.index(`t_${name}`).on(column).concurrently();
      }),
      ...more(self as never),
    ]);
  const firstLines = ({ parts }: Awaited<ReturnType<typeof between>>) =>
    parts.map(({ up }) => up.split("\n").slice(0, 2).join(" ").trim());

  test("two indexes with their columns", async () => {
    const steps = await trip([table([])], [table(["a", "b"])], "insert into t values (1)");
    expect(firstLines(steps)).toEqual([
      'ALTER TABLE "t" ADD COLUMN "a" text;',
      '-- svc: no-transaction CREATE INDEX CONCURRENTLY "t_a" ON "t" USING btree ("a");',
      '-- svc: no-transaction CREATE INDEX CONCURRENTLY "t_b" ON "t" USING btree ("b");',
    ]);
    const [one, two] = steps.parts.map(({ snapshot }) => snapshot);
    expect(two!.prevId).toBe(one!.id);
  });

  test("an index that is replaced, while its table is renamed", async () => {
    const named = (name: string, by: "a" | "id") =>
      pg.pgTable(name, { id: id(), a: pg.text() }, (self) => [pg.index("i").on(self[by]).concurrently()]);
    const renames = [{ table: "t", from: "t", to: "s", kind: "table" as const }];
    const steps = await trip([named("t", "a")], [named("s", "id")], {
      renames,
      seed: "insert into t values (1, 'a')",
    });
    expect(firstLines(steps)).toEqual([
      '-- svc: no-transaction DROP INDEX CONCURRENTLY "i";',
      'ALTER TABLE "t" RENAME TO "s";',
      '-- svc: no-transaction CREATE INDEX CONCURRENTLY "i" ON "s" USING btree ("id");',
    ]);
  });

  test("but not the index that a foreign key needs, or that only follows its column", async () => {
    const target = pg.pgTable("t", { id: id(), a: pg.integer() }, (self) => [
      pg.uniqueIndex("t_a").on(self.a).concurrently(),
    ]);
    const refers = pg.pgTable("u", { t: pg.integer().references(() => target.a) });
    const plain = pg.pgTable("t", { id: id(), a: pg.integer() });
    expect((await trip([plain], [target, refers])).parts).toHaveLength(1);
    const typed = (column: pg.PgColumnBuilderBase) =>
      pg.pgTable("t", { id: id(), c: column }, (self) => [
        pg
          .index("t_c")
          .on(self.c as never)
          .concurrently(),
      ]);
    expect((await trip([typed(pg.integer())], [typed(pg.text())], rows)).parts).toHaveLength(1);
  });
});

describe("other objects", () => {
  test("views are recreated when what they select changes, including views on views", async () => {
    const views = (definition: string) => [
      pg.pgView("v2", { n: pg.integer() }).as(raw`select n from v1`),
      pg.pgView("v1", { n: pg.integer() }).as(raw.raw(definition)),
      pg.pgMaterializedView("m", { n: pg.integer() }).as(raw`select n from v2`),
    ];
    const [a, b] = [t(pg.integer()), t(pg.text())];
    const seed = rows;
    await trip([a, ...views("select id as n, c from t")], [b, ...views("select id as n, c from t")], seed);
    await trip([a, ...views("select id as n from t")], [a, ...views("select id + 1 as n from t")], seed);
    await trip([a, ...views("select id as n from t")], [], seed);
  });

  test("views with options", async () => {
    const one = raw`select 1 as one`;
    const plain = pg
      .pgView("v", {})
      .with({ securityBarrier: true, checkOption: "local" })
      .as(raw`select id from t`);
    const stored = pg
      .pgMaterializedView("m", {})
      .using("heap")
      .with({ fillfactor: 70, autovacuumEnabled: false })
      .tablespace("pg_default")
      .withNoData()
      .as(one);
    const { up } = await trip([t()], [t(), plain, stored], rows);
    expect(up).toContain(
      'CREATE VIEW "public"."v" WITH (check_option = local, security_barrier = true) AS (',
    );
    expect(up).toContain(
      'CREATE MATERIALIZED VIEW "public"."m" USING "heap" WITH (fillfactor = 70, autovacuum_enabled = false) TABLESPACE "pg_default" AS (select 1 as one) WITH NO DATA;',
    );
  });

  test("an enum defined by an object, also as an array's element type", async () => {
    const space = pg.pgSchema("space");
    const kind = space.enum("kind of it", { One: "one", Two: "it's" });
    const table = pg.pgTable("t", { id: id(), c: kind().default("it's"), d: kind().array() });
    const { up } = await trip([], [space, kind, table]);
    expect(up).toContain(`"c" "space"."kind of it" DEFAULT 'it''s'`);
    expect(up).toContain('"d" "space"."kind of it"[]');
  });

  test("a descending identity gets the whole range of its type", async () => {
    const options = { increment: -1 };
    const { up } = await trip([], [t(pg.integer().generatedAlwaysAsIdentity(options))]);
    expect(up).toContain("INCREMENT BY -1 MINVALUE -2147483648 MAXVALUE -1 START WITH -1");
    const small = await trip([], [t(pg.smallint().generatedAlwaysAsIdentity(options))]);
    expect(small.up).toContain("MINVALUE -32768");
  });

  test("schemas with tables, enums and sequences in them", async () => {
    const space = pg.pgSchema("space");
    const kind = space.enum("kind", ["a", "b"]);
    const inside = (c: pg.PgColumnBuilderBase) =>
      space.table("t", { id: pg.serial().primaryKey(), kind: kind().default("a"), c });
    const sequence = space.sequence("s", { startWith: 3 });
    const [a, b] = [inside(pg.integer()), inside(pg.text())];
    const refers = (to: typeof a) => pg.pgTable("u", { t: pg.integer().references(() => to.id) });
    await trip([], [space, kind, a, sequence, refers(a)]);
    const { up } = await trip([space, kind, a, sequence, refers(a)], [space, kind, b, refers(b)]);
    expect(up).toContain("-- svc: data-loss position of sequence space.s\n");
    expect((await trip([space, kind, a], [])).up).toContain("-- svc: data-loss table space.t\n");
  });

  test("sequences change their options, including NO CYCLE", async () => {
    const s = (options: pg.PgSequenceOptions) => pg.pgSequence("s", options);
    await trip([s({ cycle: true, maxValue: 9 })], [s({ startWith: 20, minValue: 10, increment: 2 })]);
  });

  test("row level security and policies", async () => {
    const open = (...policies: pg.PgPolicy[]) => pg.pgTable("t", { id: id(), c: pg.text() }, () => policies);
    const [one, two] = [
      pg.pgPolicy("p", { for: "select", using: raw`c <> 'a--b'` }),
      pg.pgPolicy("p", { for: "update", using: raw`true` }),
    ];
    await trip([open()], [open(one)], rows);
    await trip([open(one)], [open(two)], rows);
    await trip([open(one)], [], rows);
    await trip([open()], [pg.pgTable("t", { id: id(), c: pg.text() }).enableRLS()], rows);
  });

  test("names longer than PostgreSQL's limit", async () => {
    const long = "very_long_name_of_a_table_that_somebody_has_thought_of_for_fun";
    const table = (column: pg.PgColumnBuilderBase) => pg.pgTable(long, { identifier_of_it: column });
    await trip(
      [table(pg.serial().primaryKey())],
      [table(pg.integer())],
      `insert into ${long} default values`,
    );
    await trip(
      [table(pg.integer())],
      [table(pg.bigserial({ mode: "number" }).primaryKey())],
      `insert into ${long} values (1)`,
    );
  });

  test("without changes there is nothing to do", async () => {
    expect(await between([t()], [t()])).toMatchObject({ changed: false, up: "", down: "" });
  });
});
