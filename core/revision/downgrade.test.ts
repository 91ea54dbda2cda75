import { describe, expect, test } from "bun:test";
import { openSql, type Sql } from "../../drizzle/client.ts";
import { createEmptyTestDatabase } from "../../tests/support/database.ts";
import { testRevision } from "../../tests/support/revision.ts";
import { downgrade } from "./downgrade.ts";
import { readApplied } from "./store.ts";
import { upgrade } from "./upgrade.ts";

const first = testRevision(
  "1",
  [],
  "create table a (id int, b int)",
  "-- svc: data-loss table a\ndrop table a;",
);
const second = testRevision(
  "2",
  ["1"],
  "alter table a add column c int",
  "-- svc: data-loss column a.c\nalter table a drop column c;",
);

/** A database with these revisions, and a client for it. */
async function at(...revisions: ReturnType<typeof testRevision>[]) {
  const database = await createEmptyTestDatabase();
  const { url } = database;
  await upgrade({ url, revisions });
  const sql = openSql(url, { max: 1 });
  return {
    url,
    sql,
    [Symbol.asyncDispose]: async () => {
      await sql.end();
      await database[Symbol.asyncDispose]();
    },
  };
}

async function appliedIds(sql: Sql): Promise<string[]> {
  return ((await readApplied(sql)) ?? []).map(({ id }) => id);
}

test("goes back one revision, by the SQL of the database and not of the release", async () => {
  await using db = await at(first, second);
  // An older release: it knows neither the second revision nor its way back.
  expect(await downgrade({ url: db.url, revisions: [first] })).toEqual({ reverted: ["2"], head: "1" });
  expect(await appliedIds(db.sql)).toEqual(["1"]);
  expect(await downgrade({ url: db.url, revisions: [first] })).toEqual({ reverted: ["1"], head: "base" });
  expect(downgrade({ url: db.url, revisions: [first] })).rejects.toThrow("nothing to take back");
});

test("up, down and up again is where it was", async () => {
  await using db = await at(first, second);
  await downgrade({ url: db.url, revisions: [first, second], target: "base" });
  expect(await db.sql`select to_regclass('a') as a`).toMatchObject([{ a: null }]);
  expect((await upgrade({ url: db.url, revisions: [first, second] })).applied).toEqual(["1", "2"]);
});

describe("what would be lost", () => {
  test("is named before anything is changed, and needs to be allowed", async () => {
    await using db = await at(first, second);
    await db.sql`insert into a (id, c) values (1, 2)`;
    const { url } = db;
    const revisions = [first, second];
    expect(downgrade({ url, revisions, target: "base" })).rejects.toThrow(
      "This would lose the values of a.c, the rows of a.",
    );
    expect(await appliedIds(db.sql)).toEqual(["1", "2"]);
    expect(await downgrade({ url, revisions, target: "base", allowDataLoss: true })).toMatchObject({
      head: "base",
    });
  });

  test("is nothing where no row has a value", async () => {
    await using db = await at(first, second);
    await db.sql`insert into a (id) values (1)`;
    expect(await downgrade({ url: db.url, revisions: [first, second] })).toMatchObject({ reverted: ["2"] });
    expect(downgrade({ url: db.url, revisions: [first, second] })).rejects.toThrow("the rows of a");
  });

  test("in other words is always a loss", async () => {
    const narrow = testRevision(
      "3",
      [],
      "create table n (a int)",
      "-- svc: data-loss what is longer\ndrop table n;",
    );
    await using db = await at(narrow);
    expect(downgrade({ url: db.url, revisions: [narrow] })).rejects.toThrow("what is longer");
  });
});

test("without a way back nothing of the plan is run", async () => {
  const last = testRevision("3", ["2"], "alter table a add column d int", "alter table a drop column d;");
  const oneWay = testRevision("2", ["1"], "select 1", "-- svc: irreversible the old names are gone");
  await using db = await at(first, oneWay, last);
  const goBack = downgrade({ url: db.url, revisions: [first, oneWay, last], target: "1" });
  expect(goBack).rejects.toThrow("Revision 2 cannot be taken back: the old names are gone");
  await goBack.catch(() => {});
  expect(await appliedIds(db.sql)).toEqual(["1", "2", "3"]);
});

test("down SQL that fails leaves the revision as it was, and says where", async () => {
  const broken = testRevision(
    "1",
    [],
    "create table a (id int)",
    "drop table a;\nselect nothing_of_that_name;",
  );
  await using db = await at(broken);
  expect(downgrade({ url: db.url, revisions: [broken] })).rejects.toThrow(
    'down.sql of revision 1, line 2: column "nothing_of_that_name" does not exist',
  );
  expect(await appliedIds(db.sql)).toEqual(["1"]);
  expect(await db.sql`select to_regclass('a') is not null as a`).toMatchObject([{ a: true }]);
});
