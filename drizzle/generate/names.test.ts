import { describe, expect, test } from "bun:test";
import { sql as raw } from "drizzle-orm";
import * as pg from "drizzle-orm/pg-core";
import { createEmptyTestDatabase } from "../../tests/support/database/database.ts";
import { testRevision } from "../../tests/support/database/revision.ts";
import { snapshotFor, tripDatabase } from "../../tests/support/database/round_trip.ts";
import { openSql } from "../client.ts";
import { downgrade } from "../revision/downgrade.ts";
import { upgrade } from "../revision/upgrade.ts";
import { shownName } from "../sql_text.ts";
import { generateBetween } from "./index.ts";
import { emptyLike } from "./snapshot.ts";

const { trip, between } = tripDatabase();

/** A schema in which everything is named `name`. */
function everythingNamed(name: string) {
  const kind = pg.pgEnum(`${name} kind`, [name, "b"]);
  const table = pg.pgTable(
    name,
    {
      id: pg.serial(`${name} id`).primaryKey(),
      own: pg.text(name).default(name),
      kind: kind(`${name} kind`),
    },
    (self) => [
      pg.index(`${name} index`).on(self.own),
      pg.unique(`${name} unique`).on(self.own, self.kind),
      pg.check(`${name} check`, raw`${self.own} <> 'nothing'`),
    ],
  );
  const other = pg.pgTable(`${name} other`, { [name]: pg.integer().references(() => table.id) });
  return [kind, table, other];
}

const names = [
  "order",
  "Group",
  "two  words",
  'a "quoted" one',
  "it's",
  "a;b",
  "a--b",
  "ö",
  "a\nb",
  "a.b",
  "$1",
  "\\000a",
  "constructor",
];

describe("a schema in which everything has the same name", () => {
  test.each(names)("counts as lost only if it has rows, and is then named: %j", async (name) => {
    const quoted = `"${name.replaceAll('"', '""')}"`;
    const snapshot = await snapshotFor(...everythingNamed(name));
    const { up, down } = (await generateBetween(emptyLike(snapshot), snapshot)).parts[0]!;
    const revisions = [testRevision("1", [], up, down)];
    await using database = await createEmptyTestDatabase();
    const { url } = database;
    await upgrade({ url, revisions });
    expect((await downgrade({ url, revisions })).reverted).toEqual(["1"]);
    await upgrade({ url, revisions });
    const sql = openSql(url, { max: 1 });
    await sql.unsafe(`insert into ${quoted} default values`);
    await sql.end();
    await expect(downgrade({ url, revisions })).rejects.toThrow(
      `This would lose the rows of ${shownName([name])}.`,
    );
    expect((await downgrade({ url, revisions, allowDataLoss: true })).reverted).toEqual(["1"]);
  });
});

describe("the names that svc reserves", () => {
  const t = (name: string) => pg.pgTable(name, { id: pg.integer() });
  test.each([
    ["table", t("revision")],
    ["enum", pg.pgEnum("revision", ["a"])],
    ["sequence", pg.pgSequence("revision")],
    ["index", pg.pgTable("t", { id: pg.integer() }, (self) => [pg.index("revision_pkey").on(self.id)])],
  ])("are refused for a %s when the revision is written", async (kind, thing) => {
    await expect(between([], [thing])).rejects.toThrow(`The ${kind} revision`);
  });

  test("are allowed in another schema", async () => {
    const space = pg.pgSchema("space");
    const { up } = await trip([], [space, space.table("revision", { id: pg.integer() })]);
    expect(up).toContain('CREATE TABLE "space"."revision"');
  });
});

describe("names that PostgreSQL shortens to the same 63 bytes are refused", () => {
  // The 63rd byte is in the middle of the last character.
  const [a, b] = ["x", "y"].map((end) => `${"é".repeat(31)}é${end}`) as [string, string];
  const table = (
    name: string,
    columns: Record<string, pg.PgColumnBuilderBase> = { id: pg.integer() },
    ...more: never[]
  ) => pg.pgTable(name, columns, () => more);
  test.each([
    ["tables", [table(a), table(b)], "The schema has two tables whose names"],
    ["columns", [table("t", { [a]: pg.text(), [b]: pg.text() })], "Table t has two columns whose names"],
    [
      "constraints",
      [
        table(
          "t",
          { c: pg.text() },
          pg.check(a, raw`c <> 'a'`) as never,
          pg.check(b, raw`c <> 'b'`) as never,
        ),
      ],
      "Table t has two checks whose names",
    ],
    ["enums", [pg.pgEnum(a, ["a"]), pg.pgEnum(b, ["a"])], "The schema has two enums whose names"],
    [
      "views",
      [pg.pgView(a, {}).as(raw`select 1`), table(b)],
      "The schema has a view and a table whose names",
    ],
  ])("%s", async (_, things, message) => {
    await expect(between([], things)).rejects.toThrow(
      `${message} PostgreSQL shortens to the same ${"é".repeat(31)}: `,
    );
  });
});
