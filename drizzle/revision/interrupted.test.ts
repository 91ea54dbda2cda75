import { describe, expect, test } from "bun:test";
import { closing, concurrent, isValid, known, table } from "../../tests/support/database/concurrent_index.ts";
import { createEmptyTestDatabase } from "../../tests/support/database/database.ts";
import { testRevision } from "../../tests/support/database/revision.ts";
import { openSpoiltWay } from "../../tests/support/database/spoilt_way.ts";
import { downgrade } from "./downgrade.ts";
import { repair } from "./stamp.ts";
import { upgrade } from "./upgrade.ts";

describe("a non-transactional statement", () => {
  test("goes up and down, and is recorded", async () => {
    await using database = await createEmptyTestDatabase();
    const { url } = database;
    await upgrade({ url, revisions: known });
    await using sql = closing(url);
    expect(await isValid(sql.client, "a_idx")).toBe(true);
    expect(await sql.client`select id, state from revision order by id`).toEqual(
      expect.arrayContaining([{ id: "2", state: "applied" }]),
    );
    await downgrade({ url, revisions: known });
    expect(await isValid(sql.client, "a_idx")).toBeUndefined();
    expect((await upgrade({ url, revisions: known })).applied).toEqual(["2"]);
  });

  test("without the mark is refused with a hint at the mark", async () => {
    await using database = await createEmptyTestDatabase();
    const unmarked = testRevision("2", ["1"], "create index concurrently a_idx on a (id)");
    expect(upgrade({ url: database.url, revisions: [table, unmarked] })).rejects.toThrow(
      "-- svc: no-transaction",
    );
  });

  test("is run again after an interruption; an invalid index is dropped first", async () => {
    await using database = await createEmptyTestDatabase();
    const { url } = database;
    await upgrade({ url, revisions: known, target: "1" });
    await using sql = closing(url);
    await sql.client`insert into a values (1), (1)`;
    // What a killed run leaves behind: a row that says it started, and an invalid index.
    await sql.client`insert into revision (id, checksum, down_sql, manifest, state)
      values ('2', ${concurrent.checksum}, ${concurrent.down}, '{"parents": ["1"]}', 'applying')`;
    await sql.client`create unique index concurrently a_idx on a (id)`.catch(() => {});
    expect(await isValid(sql.client, "a_idx")).toBe(false);
    expect(await upgrade({ url, revisions: known })).toMatchObject({ head: "2" });
    expect(await isValid(sql.client, "a_idx")).toBe(true);
  });

  test("that was done but not recorded is recorded", async () => {
    await using database = await createEmptyTestDatabase();
    const { url } = database;
    await upgrade({ url, revisions: known });
    await using sql = closing(url);
    await sql.client`update revision set state = 'applying' where id = '2'`;
    await expect(downgrade({ url, revisions: known })).rejects.toThrow("first run svc database upgrade");
    await upgrade({ url, revisions: known });
    await sql.client`update revision set state = 'reverting' where id = '2'`;
    await sql.client`drop index a_idx`;
    await expect(upgrade({ url, revisions: known })).rejects.toThrow("first run svc database downgrade");
    expect(await downgrade({ url, revisions: known })).toEqual({ reverted: ["2"], head: "1" });
  });
});

test("an index of a table in another schema is found again after an interruption", async () => {
  await using database = await createEmptyTestDatabase();
  const { url } = database;
  const elsewhere = testRevision(
    "2",
    ["1"],
    '-- svc: no-transaction\ncreate index concurrently if not exists a_idx on only "Else where".a (id);\ncreate unique index concurrently b_idx on other.a (id);',
    '-- svc: no-transaction\ndrop index concurrently "Else where".a_idx;\ndrop index concurrently other.b_idx;',
  );
  const schemas = testRevision(
    "1",
    [],
    'create schema "Else where"; create table "Else where".a (id int); create schema other; create table other.a (id int)',
  );
  const revisions = [schemas, elsewhere];
  await upgrade({ url, revisions, target: "1" });
  await using sql = closing(url);
  await sql.client`insert into revision (id, checksum, down_sql, manifest, state)
    values ('2', ${elsewhere.checksum}, ${elsewhere.down}, '{"parents": ["1"]}', 'applying')`;
  await sql.client.unsafe('create index a_idx on "Else where".a (id)');
  await sql.client`insert into other.a values (1), (1)`;
  await sql.client`create unique index concurrently b_idx on other.a (id)`.catch(() => {});
  expect(await isValid(sql.client, "other.b_idx")).toBe(false);
  await sql.client`delete from other.a`;
  expect(await upgrade({ url, revisions })).toMatchObject({ head: "2" });
  for (const name of ['"Else where".a_idx', "other.b_idx"])
    expect(await isValid(sql.client, name)).toBe(true);
});

describe("several non-transactional statements", () => {
  const several = testRevision(
    "2",
    ["1"],
    `-- svc: no-transaction
create index concurrently a_one on a (id);
create unique index concurrently a_two on a (id);
create index concurrently a_three on a ((id + 1));`,
    "-- svc: no-transaction\ndrop index concurrently a_three;\ndrop index concurrently a_two;\ndrop index concurrently a_one;",
  );
  const revisions = [table, several];
  const names = ["a_one", "a_two", "a_three"];

  test("go up and down", async () => {
    await using database = await createEmptyTestDatabase();
    const { url } = database;
    await upgrade({ url, revisions });
    await using sql = closing(url);
    for (const name of names) expect(await isValid(sql.client, name)).toBe(true);
    await downgrade({ url, revisions });
    for (const name of names) expect(await isValid(sql.client, name)).toBeUndefined();
  });

  test("resume after the last one that took effect, wherever they were interrupted", async () => {
    await using database = await createEmptyTestDatabase();
    const { url } = database;
    await upgrade({ url, revisions, target: "1" });
    await using sql = closing(url);
    await sql.client`insert into a values (1), (1)`;
    const failed = await upgrade({ url, revisions }).catch((error: Error) => error.message);
    expect(failed).toContain("line 3");
    expect(failed).toContain(
      "Earlier statements took effect. Correct the cause, then: svc database upgrade resumes where it stopped",
    );
    expect(await sql.client`select state from revision where id = '2'`).toEqual([
      { state: "applying" },
    ] as never);
    expect(await isValid(sql.client, "a_one")).toBe(true);
    const [before] = await sql.client`select to_regclass('a_one')::oid as oid`;
    await sql.client`delete from a`;
    expect(await upgrade({ url, revisions })).toMatchObject({ head: "2" });
    for (const name of names) expect(await isValid(sql.client, name)).toBe(true);
    // It was not created a second time.
    expect((await sql.client`select to_regclass('a_one')::oid as oid`)[0]).toEqual(before!);
    await sql.client`update revision set state = 'reverting' where id = '2'`;
    await sql.client`drop index a_three`;
    await downgrade({ url, revisions });
    for (const name of names) expect(await isValid(sql.client, name)).toBeUndefined();
  });
});

test("an interrupted REINDEX of an index that is missing is not taken for a DROP that is done", async () => {
  await using database = await createEmptyTestDatabase();
  const { url } = database;
  const reindex = testRevision("2", ["1"], "-- svc: no-transaction\nreindex index concurrently gone;");
  const revisions = [table, reindex];
  await upgrade({ url, revisions, target: "1" });
  await using sql = closing(url);
  await sql.client`insert into revision (id, checksum, down_sql, manifest, state)
    values ('2', ${reindex.checksum}, '', '{"parents": ["1"]}', 'applying')`;
  await expect(upgrade({ url, revisions })).rejects.toThrow('relation "gone" does not exist');
});

test("a statement that PostgreSQL rejects has no effect, and runs again once its file is corrected", async () => {
  await using database = await createEmptyTestDatabase();
  const { url } = database;
  const wrong = testRevision(
    "2",
    ["1"],
    "-- svc: no-transaction\ncreate index concurrently a_idx on a (nope);",
  );
  expect(upgrade({ url, revisions: [table, wrong] })).rejects.toThrow('column "nope" does not exist');
  expect(await upgrade({ url, revisions: known })).toMatchObject({ applied: ["2"], head: "2" });
});

test("a unique index that the rows do not allow leaves no invalid index", async () => {
  await using database = await createEmptyTestDatabase();
  const { url } = database;
  await upgrade({ url, revisions: [table] });
  await using sql = closing(url);
  await sql.client`insert into a values (1), (1)`;
  const up = "-- svc: no-transaction\ncreate unique index concurrently a_idx on a (id);";
  await expect(upgrade({ url, revisions: [table, testRevision("2", ["1"], up)] })).rejects.toThrow(
    "Nothing of revision 2 was applied",
  );
  expect(await isValid(sql.client, "a_idx")).toBeUndefined();
});

test("a rejected statement does not leave the revision half-applied, in either direction", async () => {
  await using database = await createEmptyTestDatabase();
  const { url } = database;
  const refused = "-- svc: no-transaction\nalter system set nothing_of_that_name = 1;";
  await using sql = closing(url);
  expect(upgrade({ url, revisions: [table, testRevision("2", ["1"], refused)] })).rejects.toThrow(
    "nothing_of_that_name",
  );
  expect([...(await sql.client`select id, state from revision`)]).toEqual([{ id: "1", state: "applied" }]);
  const back = [table, testRevision("2", ["1"], "select 1", refused)];
  await upgrade({ url, revisions: back });
  expect(downgrade({ url, revisions: back })).rejects.toThrow("nothing_of_that_name");
  expect([...(await sql.client`select id, state from revision order by id`)]).toEqual([
    { id: "1", state: "applied" },
    { id: "2", state: "applied" },
  ]);
});

test("an interrupted revision whose file was edited since is refused", async () => {
  await using database = await createEmptyTestDatabase();
  const { url } = database;
  await upgrade({ url, revisions: [table] });
  await using sql = closing(url);
  await sql.client`insert into revision (id, checksum, down_sql, manifest, state)
    values ('2', 'other', 'other', '{"parents": ["1"]}', 'applying')`;
  const refused = upgrade({ url, revisions: known });
  await expect(refused).rejects.toThrow("Revision 2 was edited after it was interrupted");
  expect(await repair({ url, revisions: known, id: "2", decision: "notApplied" })).toBe("2");
  expect(await upgrade({ url, revisions: known })).toMatchObject({ applied: ["2"] });
});

test("an unnamed concurrent index is refused, as it could not be found again", async () => {
  await using database = await createEmptyTestDatabase();
  const unnamed = testRevision("2", ["1"], "-- svc: no-transaction\ncreate index concurrently on a (id);");
  expect(upgrade({ url: database.url, revisions: [table, unnamed] })).rejects.toThrow("without a name");
});

test("a statement with an unknown outcome is left for a person to decide", async () => {
  await using database = await createEmptyTestDatabase();
  const { url } = database;
  const unclear = testRevision("2", ["1"], "-- svc: no-transaction\nalter system set work_mem = '5MB'");
  const revisions = [table, unclear];
  await upgrade({ url, revisions, target: "1" });
  await using sql = closing(url);
  const interrupt = () => sql.client`
    insert into revision (id, checksum, down_sql, manifest, state)
    values ('2', ${unclear.checksum}, '', '{"parents": ["1"]}', 'applying')`;
  await interrupt();
  const goOn = upgrade({ url, revisions });
  expect(goOn).rejects.toThrow("svc database repair 2 --applied (or --not-applied)");
  await goOn.catch(() => {});
  expect(await repair({ url, revisions, id: "2", decision: "applied" })).toBe("2");
  expect(await upgrade({ url, revisions })).toMatchObject({ applied: [], head: "2" });
  expect(repair({ url, revisions, id: "2", decision: "applied" })).rejects.toThrow("is not interrupted");
});

test.each([
  ["-- svc: no-transaction\ncreate index concurrently a_idx on a (id);", "resumes where it stopped"],
  ["create index a_idx on a (id);", "svc database upgrade continues from there"],
])("a connection that is reset during a statement fails the upgrade: %s", async (up, next) => {
  await using database = await createEmptyTestDatabase();
  const { url } = database;
  const revisions = [table, testRevision("2", ["1"], up)];
  await upgrade({ url, revisions, target: "1" });
  using way = await openSpoiltWay(url);
  way.resetAt("a_idx on a (id)");
  const failed = await upgrade({ url: way.url, revisions }).catch((error: Error) => error.message);
  expect(failed).toContain("closed the connection: run it again");
  expect(failed).toContain(next);
  expect(await upgrade({ url, revisions })).toMatchObject({ head: "2" });
});

test("an accepted edit replaces what the database stores", async () => {
  await using database = await createEmptyTestDatabase();
  const { url } = database;
  await upgrade({ url, revisions: [table] });
  const edited = [testRevision("1", [], "create table a (id int)", "drop table a cascade;")];
  expect(await repair({ url, revisions: edited, id: "1", decision: "accept" })).toBe("1");
  await using sql = closing(url);
  expect(await sql.client`select down_sql from revision`).toEqual([
    { down_sql: "drop table a cascade;" },
  ] as never);
  expect(await upgrade({ url, revisions: edited })).toMatchObject({ applied: [] });
});
