import { describe, expect, test } from "bun:test";
import { createEmptyTestDatabase } from "../../tests/support/database/database.ts";
import { testRevision } from "../../tests/support/database/revision.ts";
import { openSql, type Sql } from "../client.ts";
import { downgrade } from "./downgrade.ts";
import { lockKey } from "./lock.ts";
import { downgradeScript, upgradeScript } from "./script.ts";
import { splitStatements } from "./statements.ts";
import { createRevisionTable, readApplied } from "./store.ts";
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

test("reverts one revision, with the SQL of the database and not of the release", async () => {
  await using db = await at(first, second);
  // An older release, which knows neither the second revision nor its down SQL.
  expect(await downgrade({ url: db.url, revisions: [first] })).toEqual({ reverted: ["2"], head: "1" });
  expect(await appliedIds(db.sql)).toEqual(["1"]);
  expect(await downgrade({ url: db.url, revisions: [first] })).toEqual({ reverted: ["1"], head: "base" });
  expect(downgrade({ url: db.url, revisions: [first] })).rejects.toThrow("nothing to revert");
  expect(downgrade({ url: db.url, revisions: [first], target: "-0" })).rejects.toThrow("invalid count: -0");
});

test("up, down and up again ends where it started", async () => {
  await using db = await at(first, second);
  await downgrade({ url: db.url, revisions: [first, second], target: "base" });
  expect(await db.sql`select to_regclass('a') as a`).toMatchObject([{ a: null }]);
  expect((await upgrade({ url: db.url, revisions: [first, second] })).applied).toEqual(["1", "2"]);
});

describe("data that would be lost", () => {
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

  test("does not include columns without values", async () => {
    await using db = await at(first, second);
    await db.sql`insert into a (id) values (1)`;
    expect(await downgrade({ url: db.url, revisions: [first, second] })).toMatchObject({ reverted: ["2"] });
    expect(downgrade({ url: db.url, revisions: [first, second] })).rejects.toThrow("the rows of a");
  });

  test("described only in words always counts as a loss", async () => {
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

test("an irreversible revision stops the whole plan before anything runs", async () => {
  const last = testRevision("3", ["2"], "alter table a add column d int", "alter table a drop column d;");
  const oneWay = testRevision("2", ["1"], "select 1", "-- svc: irreversible the old names are gone");
  await using db = await at(first, oneWay, last);
  const goBack = downgrade({ url: db.url, revisions: [first, oneWay, last], target: "1" });
  expect(goBack).rejects.toThrow("Revision 2 cannot be reverted: the old names are gone");
  await goBack.catch(() => {});
  expect(await appliedIds(db.sql)).toEqual(["1", "2", "3"]);
});

test("an irreversible revision has no downgrade script", async () => {
  const oneWay = testRevision("1", [], "select 1", "-- svc: irreversible the old names are gone");
  await using db = await at(oneWay);
  expect(downgradeScript({ url: db.url, revisions: [oneWay] })).rejects.toThrow("cannot be reverted");
  await db.sql`update revision set state = 'reverting'`;
  expect(downgradeScript({ url: db.url, revisions: [oneWay] })).rejects.toThrow(
    "was interrupted while reverting",
  );
});

test("failing down SQL leaves the revision as it was, and the error names the line", async () => {
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

describe("during a downgrade", () => {
  test("a loss hidden by a rename stops that step, with nothing lost", async () => {
    const add = testRevision(
      "2",
      ["1"],
      "alter table a add column x int",
      "-- svc: data-loss column a.x\nalter table a drop column x;",
    );
    const rename = testRevision("3", ["2"], "alter table a rename x to y", "alter table a rename y to x;");
    await using db = await at(first, add, rename);
    await db.sql`insert into a (id, y) values (1, 2)`;
    const goBack = downgrade({ url: db.url, revisions: [first, add, rename], target: "1" });
    expect(goBack).rejects.toThrow("the values of a.x");
    await goBack.catch(() => {});
    expect(await db.sql`select x from a`).toMatchObject([{ x: 2 }]);
    expect(await appliedIds(db.sql)).toEqual(["1", "2"]);
  });

  test("an interrupted downgrade is finished, and counts as one step", async () => {
    const index = testRevision(
      "2",
      ["1"],
      "-- svc: no-transaction\ncreate index concurrently i on a (id);",
      "-- svc: no-transaction\ndrop index concurrently i;",
    );
    await using db = await at(first, index);
    await db.sql`update revision set state = 'reverting' where id = '2'`;
    expect(await downgrade({ url: db.url, revisions: [first, index] })).toEqual({
      reverted: ["2"],
      head: "1",
    });
  });
});

describe("an older release leaves the triggers of a newer one alone", () => {
  const novel = `create function svc_novel() returns trigger language plpgsql as 'begin return new; end';
    create trigger svc_novel before insert on a for each row execute function svc_novel()`;
  const newer = testRevision("2", ["1"], novel, "drop trigger svc_novel on a; drop function svc_novel();", {
    compatible: true,
  });
  const newest = testRevision("3", ["2"], "select 1", "-- touches challenge", { compatible: true });
  const isThere = async (sql: Sql) =>
    (await sql`select from pg_trigger where tgname = 'svc_novel'`).length === 1;
  const note = (sql: Sql, { id, checksum, down, manifest }: ReturnType<typeof testRevision>) =>
    sql`insert into revision (id, checksum, down_sql, manifest) values (${id}, ${checksum}, ${down}, ${JSON.stringify(manifest)}::text::jsonb)`;

  test("when it finds nothing to do, and when it reverts part of that release", async () => {
    await using db = await at(first);
    await db.sql.unsafe(novel);
    await note(db.sql, newer);
    await note(db.sql, newest);
    expect(await upgrade({ url: db.url, revisions: [first] })).toMatchObject({ applied: [], head: "3" });
    expect(await isThere(db.sql)).toBe(true);
    expect(await downgrade({ url: db.url, revisions: [first] })).toEqual({ reverted: ["3"], head: "2" });
    expect(await isThere(db.sql)).toBe(true);
    expect(await downgrade({ url: db.url, revisions: [first] })).toEqual({ reverted: ["2"], head: "1" });
    expect(await isThere(db.sql)).toBe(false);
  });

  test("when that release upgrades while the older one waits", async () => {
    await using database = await createEmptyTestDatabase();
    const { url } = database;
    const sql = openSql(url, { max: 1 });
    await sql`select pg_advisory_lock(${lockKey})`;
    const { promise: waiting, resolve: waits } = Promise.withResolvers<string>();
    const older = upgrade({ url, revisions: [first], notice: waits });
    await waiting;
    await createRevisionTable(sql);
    await sql.unsafe(`${first.up}; ${novel}`);
    await note(sql, first);
    await note(sql, newer);
    await sql`select pg_advisory_unlock(${lockKey})`;
    expect(await older).toMatchObject({ applied: [], head: "2" });
    expect(await isThere(sql)).toBe(true);
    await sql.end();
  });
});

const otherRoles = [
  ["set role pg_monitor"],
  ["set session authorization pg_monitor"],
  ["insert into logged values (1)"],
  ["-- svc: no-transaction\ndo $$ begin set role pg_monitor; commit; end $$"],
];
/** A table whose trigger sets a role. */
const logged = testRevision(
  "0",
  [],
  `create table logged (id int);
   create function become() returns trigger language plpgsql as 'begin set role pg_monitor; return new; end';
   create trigger become before insert on logged for each row execute function become()`,
);

test.each(otherRoles)("a role set by one revision does not carry over: %s", async (up) => {
  const next = testRevision("2", ["1"], "create table here (id int)");
  await using db = await at(logged, testRevision("1", ["0"], up), next);
  expect(await db.sql`select to_regclass('public.here') is not null as here`).toMatchObject([{ here: true }]);
});

test.each(otherRoles)("a role set in a script does not carry over: %s", async (up) => {
  await using db = await at(logged);
  const revisions = [
    logged,
    testRevision("1", ["0"], up),
    testRevision("2", ["1"], "create table here (id int)"),
  ];
  const script = await upgradeScript({ url: db.url, revisions });
  for (const { text } of splitStatements(script)) await db.sql.unsafe(text);
  expect(await appliedIds(db.sql)).toEqual(["0", "1", "2"]);
});

test("a role set by the database's address or for its user stays in effect", async () => {
  await using database = await createEmptyTestDatabase();
  const role = `owner_${Bun.randomUUIDv7("hex").slice(-12)}`;
  const sql = openSql(database.url, { max: 1 });
  await sql.unsafe(`create role ${role}_login login superuser password 'x'; create role ${role};
    alter role ${role}_login set role = ${role}; grant all on schema public to ${role}`);
  const addresses = {
    address: Object.assign(new URL(database.url), { search: `?options=-c%20role%3D${role}` }),
    login: Object.assign(new URL(database.url), { username: `${role}_login`, password: "x" }),
  };
  const revisions = [testRevision("0", [], "")];
  for (const [name, { href: url }] of Object.entries(addresses)) {
    revisions.push(testRevision(name, [revisions.at(-1)!.id], `reset role; create table ${name} (id int)`));
    await upgrade({ url, revisions });
  }
  const owners = await sql`select distinct tableowner from pg_tables where schemaname = 'public'`;
  expect(owners).toMatchObject([{ tableowner: role }]);
  await sql.unsafe(`drop owned by ${role}; drop role ${role}_login, ${role}`);
  await sql.end();
});

test("settings and temporary tables of one revision do not carry over to the next", async () => {
  const sets = testRevision(
    "1",
    [],
    "create schema s; set search_path = s; set statement_timeout = 100; create temp table t ()",
  );
  const next = testRevision(
    "2",
    ["1"],
    "create table here (id int); select pg_sleep(0.2); create temp table t ()",
  );
  await using db = await at(sets, next);
  expect(await db.sql`select to_regclass('public.here') is not null as here`).toMatchObject([{ here: true }]);
});
