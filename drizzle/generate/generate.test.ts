import { describe, expect, test } from "bun:test";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql as raw } from "drizzle-orm";
import * as pg from "drizzle-orm/pg-core";
import { snapshotFor, tripDatabase } from "../../tests/support/database/round_trip.ts";
import * as schema from "../schema/index.ts";
import { generate, generateBetween } from "./index.ts";

const { trip, between } = tripDatabase();

const id = () => pg.integer().primaryKey();
const t = (c: pg.PgColumnBuilderBase) => pg.pgTable("t", { id: id(), c });

interface Columns {
  c: pg.ExtraConfigColumn & pg.PgColumn;
}

describe("generate", () => {
  test("without a snapshot everything is new; with the resulting snapshot, nothing is", async () => {
    const first = await generate(undefined, { t: t(pg.text()), other: "no table" });
    expect(first.parts).toMatchObject([
      {
        up: 'CREATE TABLE "t" (\n  "id" integer NOT NULL,\n  "c" text,\n  CONSTRAINT "t_pkey" PRIMARY KEY("id")\n);\n',
        down: '-- svc: data-loss table t\nDROP TABLE "t";\n',
      },
    ]);
    // As if it had been read from its file.
    const stored = JSON.parse(JSON.stringify(first.snapshot));
    expect(stored).toEqual(first.snapshot);
    const second = await generate(stored, { t: t(pg.text()) });
    expect(second.parts).toEqual([]);
    const third = await generate(stored, { t: t(pg.integer()) });
    expect(third.snapshot.prevId).toBe(first.snapshot.id);
  });

  test("an object exported twice is created once", async () => {
    const table = t(pg.text());
    const { parts } = await generate(undefined, { table, alias: table });
    expect(parts[0]!.up.match(/CREATE TABLE/g)).toHaveLength(1);
  });

  test("a bigint default can be stored in the snapshot", async () => {
    const big = pg.bigint({ mode: "bigint" }).default(9_007_199_254_740_993n);
    const { parts, snapshot } = await generate(undefined, { t: t(big) });
    expect(parts[0]!.up).toContain("DEFAULT 9007199254740993");
    expect((await generate(snapshot, { t: t(big) })).parts).toEqual([]);
  });

  test("this service's tables, up and down", async () => {
    const { changed } = await trip([], Object.values(schema));
    expect(changed).toBe(true);
  });

  test("neither prompts nor prints without a terminal, with additions and drops of every kind", async () => {
    const directory = await mkdtemp(join(tmpdir(), "svc-generate-"));
    const side = (x: string) => {
      const space = pg.pgSchema(`schema_${x}`);
      const columns = { id: id(), [`c_${x}`]: pg.text() };
      const table = pg.pgTable("same", columns, () => [pg.pgPolicy(`policy_${x}`)]);
      const view = pg.pgView(`view_${x}`, {}).as(raw`select 1 as one`);
      return [
        space,
        space.table("inside", columns),
        pg.pgEnum(`enum_${x}`, ["a"]),
        pg.pgSequence(`sequence_${x}`),
        table,
        pg.pgTable(`table_${x}`, columns),
        view,
      ];
    };
    const pair = await Promise.all([snapshotFor(...side("a")), snapshotFor(...side("b"))]);
    const program = join(directory, "generate.ts");
    const module = JSON.stringify(join(import.meta.dir, "index.ts"));
    await writeFile(
      program,
      `import { generateBetween } from ${module};
       const { parts: [{ up, down }] } = await generateBetween(...${JSON.stringify(pair)});
       process.exit(up.includes("table_b") && down.includes("table_a") ? 0 : 1);`,
    );
    const child = Bun.spawn([process.execPath, program], { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
    const output = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
    expect(output).toEqual(["", ""]);
    expect(await child.exited).toBe(0);
    await rm(directory, { recursive: true });
    await trip(side("a"), side("b"));
  });
});

describe("changes that cannot be generated are refused with advice", () => {
  const refused = async (promise: Promise<unknown>, message: string) => {
    await expect(promise).rejects.toThrow(message);
    await expect(promise).rejects.toMatchObject({ code: "invalid_input" });
  };

  test("a type to which no value converts", async () => {
    await refused(
      between([t(pg.integer())], [t(pg.uuid())]),
      "No conversion of t.c from integer to uuid is known: write the revision by hand (svc database revision -m TEXT)",
    );
    await refused(between([t(pg.integer().array())], [t(pg.boolean())]), "from integer[] to boolean");
  });

  test("a value where SQL is needed", async () => {
    const checked = pg.pgTable("t", { id: id() }, (self) => [pg.check("t_k", raw`${self.id} > ${5}`)]);
    await refused(between([], [checked]), "Check t_k of table t holds $1 in place of a value");
  });

  test("a default that is an object", async () => {
    const bytes = pg.customType<{ data: object }>({ dataType: () => "bytea" });
    await refused(between([], [t(bytes().default({ a: 1 }))]), "The default of t.c is an object");
  });

  test("a duplicate name", async () => {
    const twice = pg.pgTable("t", { id: id() }, (self) => [
      pg.index("x").on(self.id),
      pg.index("x").on(self.id),
    ]);
    await refused(between([], [twice]), "Table t has two indexes named x: rename one of them");
    const indexed = (name: string) => pg.pgTable(name, { id: id() }, (self) => [pg.index("x").on(self.id)]);
    await refused(between([], [indexed("t"), indexed("u")]), "The schema has two indexes named x");
    const columns = pg.pgTable("t", { a: pg.text("c"), b: pg.text("c") });
    await refused(between([], [columns]), "Table t has two columns named c");
    await refused(between([], [t(pg.text()), t(pg.text())]), "The schema has two tables named t");
  });

  test.each([
    ["a unique constraint named constructor", (self: Columns) => pg.unique("constructor").on(self.c)],
    ["a policy named toString", () => pg.pgPolicy("toString")],
    ["an index named __proto__", (self: Columns) => pg.index("__proto__").on(self.c)],
    ["a check named __proto__", () => pg.check("__proto__", raw`true`)],
  ])("%s", async (what, extra) => {
    const table = pg.pgTable("t", { id: id(), c: pg.text() }, (self) => [extra(self as never)]);
    await refused(between([], [table]), `Table t has ${what}, which drizzle-kit cannot read: rename it`);
  });

  test("a column named __proto__", async () => {
    await refused(between([], [t(pg.text("__proto__"))]), "Table t has a column named __proto__");
  });

  test("an index on an expression without a name", async () => {
    const indexed = pg.pgTable("t", { id: id() }, (self) => [pg.index().on(raw`(${self.id} + 1)`)]);
    await refused(between([], [indexed]), "An index of table t is on an expression: give it a name");
  });

  test("a policy outside a table", async () => {
    await refused(between([], [pg.pgPolicy("p")]), "Policy p is outside a table");
  });

  test("a role", async () => {
    await refused(between([], [pg.pgRole("admin")]), "A role belongs to the server");
  });

  test("an invalid snapshot", async () => {
    await refused(generateBetween({ version: "6" }, {}), "This is not a snapshot of a PostgreSQL schema");
  });
});
