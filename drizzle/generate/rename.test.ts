import { describe, expect, test } from "bun:test";
import { sql as raw } from "drizzle-orm";
import * as pg from "drizzle-orm/pg-core";
import { tripDatabase } from "../../tests/support/database/round_trip.ts";
import { parseRename } from "./index.ts";

const { trip, between } = tripDatabase();

describe("parseRename", () => {
  test("columns and tables, with and without a schema", () => {
    expect(parseRename("incident.a:b")).toEqual({ table: "incident", from: "a", to: "b", kind: "column" });
    expect(parseRename("space.incident.a:b")).toEqual({
      table: "space.incident",
      from: "a",
      to: "b",
      kind: "column",
    });
    expect(parseRename("a:b")).toEqual({ table: "a", from: "a", to: "b", kind: "table" });
    expect(parseRename("space.a:space.b")).toEqual({ table: "space.a", from: "a", to: "b", kind: "table" });
  });

  test("a table that moves to another schema", () => {
    const to = { from: "a", kind: "table" as const };
    expect(parseRename("a:s.b")).toEqual({ ...to, table: "a", to: "b", schema: "s" });
    expect(parseRename("s.a:public.a")).toEqual({ ...to, table: "s.a", to: "a", schema: "public" });
  });

  test("names with dots, colons and quotes, in double quotes", () => {
    const table = '"odd.table"';
    expect(parseRename('"odd.table"."a:b":"c""d"')).toEqual({
      table,
      from: "a:b",
      to: 'c"d',
      kind: "column",
    });
    expect(parseRename("Order.User:two words")).toMatchObject({
      table: "Order",
      from: "User",
      to: "two words",
    });
  });

  for (const text of ["", "a", "a:", ":b", "a.:b", "a.b.c.d:e", "a:b:c", "a.b.c:d.e", "a:b.c.d"]) {
    test(`${JSON.stringify(text)} is refused`, () => {
      expect(() => parseRename(text)).toThrow("is not a rename: write table.old:new");
    });
  }
});

describe("a table that moves to another schema keeps its rows", () => {
  const space = pg.pgSchema("some space");
  const like = (make: typeof pg.pgTable, name = "t") => {
    const t = make(name, {
      id: pg.serial().primaryKey(),
      n: pg.integer().generatedAlwaysAsIdentity(),
      c: pg.text().unique(),
    });
    return [t, pg.pgTable("refers", { t: pg.integer().references(() => t.id) })];
  };
  const rows = "insert into t (c) values ('x'); insert into refers values (1)";

  test("under another name, with --rename", async () => {
    const renames = [parseRename("t:some space.u")];
    const {
      up,
      down,
      rows: found,
    } = await trip(like(pg.pgTable), [space, ...like(space.table as never, "u")], {
      renames,
      seed: rows,
    });
    expect(up + down).not.toMatch(/DROP TABLE|data-loss|CREATE TABLE/);
    expect(found.down).toEqual(found.before);
  });
});

describe("a value of an enum keeps its rows", () => {
  const t = (...values: [string, ...string[]]) => {
    const mood = pg.pgEnum("mood", values);
    const table = pg.pgTable(
      "t",
      { id: pg.integer(), c: mood().default(values[0]), list: mood().array() },
      () => [pg.check("t_c", raw.raw(`c <> '${values[2]}'`))],
    );
    return [mood, table];
  };

  test("which is suggested where one value replaces another", async () => {
    expect((await between(t("a", "b", "c"), t("a", "d", "c"))).suggestions).toEqual(["mood.b:d"]);
  });

  test.each([
    ["mood.x:d", "Value x of mood cannot be renamed to d: value x did not exist"],
    ["mood.b:x", "Value b of mood cannot be renamed to x: value x does not exist now"],
    ["mood.a:d", "Value a of mood cannot be renamed to d: value a still exists"],
    ["mood.b:c", "Value b of mood cannot be renamed to c: value c already existed"],
  ])("and refused if it does not match: %s", async (text, message) => {
    const refused = between(t("a", "b", "c"), t("a", "d", "c"), { renames: [parseRename(text)] });
    await expect(refused).rejects.toThrow(message);
  });
});

test("a drop and an addition that may be a rename are suggested as one", async () => {
  const t = (columns: Record<string, pg.PgColumnBuilderBase>) =>
    pg.pgTable("t", { id: pg.integer(), ...columns });
  const before = [
    t({ description: pg.text(), count: pg.integer(), old: pg.uuid() }),
    pg.pgTable("crew", { id: pg.integer(), name: pg.text() }),
  ];
  const after = [
    t({ summary: pg.text(), counts: pg.integer(), amount: pg.integer() }),
    pg.pgTable("squad.x", { id: pg.integer(), name: pg.text(), motto: pg.text() }),
  ];
  const { suggestions } = await between(before, after);
  expect(suggestions).toEqual(['crew:"squad.x"', "t.description:summary", "t.count:counts"]);
  const renamed = await between(before, after, { renames: suggestions.map(parseRename) });
  expect(renamed.up).toContain('ALTER TABLE "crew" RENAME TO "squad.x";');
  expect(renamed.suggestions).toEqual([]);
});

describe("a rename that does not match the schemas is refused", () => {
  const t = (...names: string[]) =>
    pg.pgTable("t", Object.fromEntries(names.map((name) => [name, pg.integer()])));
  const cases: [string, string[], string[], string][] = [
    ["t.a:b", ["a"], ["a", "b"], "Column t.a cannot be renamed to b: column a still exists"],
    ["t.x:b", ["a"], ["b"], "Column t.x cannot be renamed to b: column x did not exist"],
    ["t.a:x", ["a"], ["b"], "Column t.a cannot be renamed to x: column x does not exist now"],
    ["t.a:b", ["a", "b"], ["b"], "Column t.a cannot be renamed to b: column b already existed"],
    ["u.a:b", ["a"], ["b"], "Column u.a cannot be renamed to b: table u does not exist before and after"],
    ["t:s", ["a"], ["a"], "Table t cannot be renamed to s: table t still exists"],
    ["u:t", ["a"], ["a"], "Table u cannot be renamed to t: table u did not exist"],
  ];
  for (const [text, before, after, message] of cases) {
    test(message, async () => {
      const refused = between([t(...before)], [t(...after)], { renames: [parseRename(text)] });
      await expect(refused).rejects.toThrow(message);
      await expect(refused).rejects.toMatchObject({ code: "invalid_input", field: "rename" });
    });
  }
});
