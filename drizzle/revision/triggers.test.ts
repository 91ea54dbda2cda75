import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { getTableName, is } from "drizzle-orm";
import { PgTable } from "drizzle-orm/pg-core";
import { createTestDatabase, type TestDatabase } from "../../tests/support/database/database.ts";
import { openSql, type Sql } from "../client.ts";
import * as schema from "../schema/index.ts";
import { triggers } from "../triggers/index.ts";
import { createTriggersScript, dropTriggersScript, installTriggers, syncTriggers } from "./triggers.ts";

let database: TestDatabase;
let sql: Sql;
beforeAll(async () => {
  database = await createTestDatabase();
  sql = openSql(database.url, { max: 1 });
});
afterAll(async () => {
  await sql.end();
  await database[Symbol.asyncDispose]();
});
beforeEach(() => syncTriggers(sql, { everything: true }));

const nothing = { created: [], repaired: [], removed: [], filled: {} };
const sync = () => syncTriggers(sql, { everything: true });
/** Changes whenever a trigger or function is recreated. */
const identities = () =>
  sql`select oid, xmin::text from pg_trigger where tgname like 'svc\\_%'
    union all select oid, xmin::text from pg_proc where proname like 'svc\\_%' order by 1`;

async function addTeam(name: string): Promise<void> {
  await sql`insert into team (name, description, created_at, updated_at) values (${name}, 'they guard the lighthouse', now(), now())`;
}
const found = async (query: string) =>
  (await sql`select name from team where search @@ websearch_to_tsquery('english', ${query})`).map(
    ({ name }) => name,
  );

test("a database at head has every trigger, and another sync touches none", async () => {
  const names = await sql`select tgname as name from pg_trigger where tgname like 'svc\\_%'`;
  expect(new Set(names.map(({ name }) => name))).toEqual(new Set(triggers.map(({ name }) => name)));
  const before = await identities();
  expect(await sync()).toEqual(nothing);
  expect(await identities()).toEqual(before);
});

test("every table with a search vector has its words in drizzle/triggers", () => {
  const tables = Object.values(schema).filter((value) => is(value, PgTable));
  const searched = tables.filter((table) => "search" in table).map((table) => getTableName(table));
  const filled = triggers.filter(({ fill }) => fill?.column === "search").map(({ table }) => table);
  expect(filled.sort()).toEqual(searched.sort());
});

describe("repairs", () => {
  const name = "svc_team_search";
  const repairs: [string, string, Partial<typeof nothing> | object][] = [
    ["a trigger that was dropped", `drop trigger ${name} on team`, { created: [name] }],
    ["a function that was dropped, trigger and all", `drop function ${name}() cascade`, { created: [name] }],
    ["a disabled trigger", `alter table team disable trigger ${name}`, { repaired: [name] }],
    ["a trigger for replicas only", `alter table team enable replica trigger ${name}`, { repaired: [name] }],
    [
      "a changed function body",
      `create or replace function ${name}() returns trigger language plpgsql as 'begin return new; end'`,
      { repaired: [name] },
    ],
    ["a body that runs as its owner", `alter function ${name}() security definer`, { repaired: [name] }],
    ["a function with a search path", `alter function ${name}() set search_path = ''`, { repaired: [name] }],
    [
      "a trigger for certain columns only",
      `drop trigger ${name} on team; create trigger ${name} before insert or update of name on team for each row execute function ${name}()`,
      { repaired: [name] },
    ],
    [
      "a trigger with a condition",
      `drop trigger ${name} on team; create trigger ${name} before insert or update on team for each row when (new.id = 1) execute function ${name}()`,
      { repaired: [name] },
    ],
    [
      "an AFTER trigger instead of BEFORE",
      `drop trigger ${name} on team; create trigger ${name} after insert or update on team for each row execute function ${name}()`,
      { repaired: [name] },
    ],
  ];
  test.each(repairs)("%s", async (_, harm, expected) => {
    await sql.unsafe(harm);
    expect(await sync()).toEqual({ ...nothing, ...expected });
    expect(await sync()).toEqual(nothing);
    await addTeam(`team ${Bun.randomUUIDv7()}`);
    expect(await sync()).toEqual(nothing);
  });

  const retired = { ...triggers[0]!, name: "svc_old", table: "term", needs: ["id"] };

  test("removes triggers that svc created and no longer defines, and nothing else", async () => {
    await syncTriggers(sql, { triggers: [...triggers, retired] });
    await sql.unsafe(`
      create function theirs() returns trigger language plpgsql as 'begin return new; end';
      create trigger theirs before insert on term for each row execute function theirs();
      create trigger svc_team_search before insert on term for each row execute function theirs()`);
    expect(await sync()).toEqual({ ...nothing, removed: ["svc_old"] });
    expect(await sql`select from pg_trigger where tgfoid = 'theirs'::regproc`).toHaveLength(2);
    expect(await sql`select from pg_proc where proname = 'svc_old'`).toHaveLength(0);
    await sql`drop function theirs cascade`;
  });

  test.each([
    [
      "with a capital",
      `create table audit (id int); create function "svc_Audit"() BODY;
        create trigger "svc_Audit" before insert on audit for each row execute function "svc_Audit"()`,
    ],
    [
      "on a partitioned table",
      `create table metrics (id int) partition by range (id); create function svc_metrics_touch() BODY;
        create table metrics_1 partition of metrics for values from (1) to (9);
        create trigger svc_metrics_touch before insert on metrics for each row execute function svc_metrics_touch()`,
    ],
    [
      "on a table with a space",
      `create table "Weird Audit" (id int); create function svc_weird() BODY;
        create trigger svc_weird before insert on "Weird Audit" for each row execute function svc_weird()`,
    ],
    [
      "as a function only",
      `create table mine (id int); create function svc_touch() BODY;
        create trigger touch before insert on mine for each row execute function svc_touch()`,
    ],
  ])("leaves someone else's svc_ trigger alone: %s", async (_, theirs) => {
    await using own = await createTestDatabase();
    const other = openSql(own.url, { max: 1 });
    await other.unsafe(theirs.replace("BODY", "returns trigger language plpgsql as 'begin return new; end'"));
    const theirTriggers = () =>
      other`select t.oid from pg_trigger t join pg_proc p on p.oid = t.tgfoid where p.prosrc = 'begin return new; end' order by 1`;
    const before = await theirTriggers();
    expect(before.length).toBeGreaterThan(0);
    expect(await syncTriggers(other, { everything: true })).toEqual(nothing);
    await other.unsafe(`${dropTriggersScript}\n${createTriggersScript()}`);
    expect(await theirTriggers()).toEqual(before);
    await other.end();
  });
});

describe("rows written while a trigger was missing", () => {
  test("are found later, whether new or changed", async () => {
    await addTeam("harbour");
    await sql`drop trigger svc_team_search on team`;
    await addTeam("quay");
    await sql`update team set name = 'pier' where name = 'harbour'`;
    expect(await found("pier")).toEqual([]);
    expect(await sync()).toEqual({ ...nothing, created: ["svc_team_search"], filled: { team: 2 } });
    expect([await found("pier"), await found("quay"), await found("harbour")]).toEqual([
      ["pier"],
      ["quay"],
      [],
    ]);
  });

  test("are filled by an upgrade, or by the next one if the first was killed in between", async () => {
    await sql`drop trigger svc_team_search on team`;
    await addTeam("mole");
    // As a process does that is killed after its commit.
    await installTriggers(sql);
    expect(await found("mole")).toEqual([]);
    expect((await syncTriggers(sql)).filled).toEqual({ team: 1 });
    expect(await found("mole")).toEqual(["mole"]);
    expect(await syncTriggers(sql)).toEqual(nothing);
  });

  test("are left alone after a restore, which brings the search vectors along", async () => {
    await sql`drop trigger svc_team_search on team`;
    await sql`update team set search = 'lamp:1' where name = 'mole'`;
    await installTriggers(sql, { filled: true });
    expect(await syncTriggers(sql)).toEqual(nothing);
    expect(await found("lamp")).toEqual(["mole"]);
    await sync();
    expect(await found("mole")).toEqual(["mole"]);
  });

  test("are left alone by an upgrade that created no trigger", async () => {
    await sql`alter table team disable trigger user`;
    await sql`update team set search = null`;
    await sql`alter table team enable trigger user`;
    expect((await syncTriggers(sql)).filled).toEqual({});
    expect(Object.keys((await sync()).filled)).toEqual(["team"]);
  });

  test("are filled once another transaction releases its row lock", async () => {
    await sql`drop trigger svc_team_search on team`;
    await addTeam("jetty");
    const holder = openSql(database.url, { max: 1 });
    const { promise: open, resolve: commit } = Promise.withResolvers<void>();
    const { promise: held, resolve: isHeld } = Promise.withResolvers<void>();
    const holding = holder.begin(async (transaction) => {
      await transaction`select from team where name = 'jetty' for update`;
      isHeld();
      await open;
    });
    await held;
    await sql`set lock_timeout = '50ms'`;
    const notices: string[] = [];
    const filling = syncTriggers(sql, {
      onRetry: (message) => {
        notices.push(message);
        commit();
      },
    });
    expect((await filling).filled).toEqual({ team: 1 });
    expect(notices[0]).toBe("search of team: a table is in use, trying again");
    await sql`set lock_timeout = 0`;
    await holding;
    await holder.end();
  });

  test("are filled in several steps in a table of many blocks", async () => {
    await sql`drop trigger svc_definition_search on definition`;
    await sql`insert into definition (text, created_at, updated_at)
      select repeat('lantern ', 100) || n, now(), now() from generate_series(1, 9000) n`;
    expect((await sync()).filled).toEqual({ definition: 9000 });
    await sql`delete from definition`;
  });
});

describe("search", () => {
  test("a name weighs more than a description", async () => {
    await addTeam("beacon");
    await addTeam("other");
    await sql`update team set description = 'they look after the beacon' where name = 'other'`;
    const ranked = await sql`select name from team, websearch_to_tsquery('english', 'beacons') q
      where search @@ q order by ts_rank(search, q) desc`;
    expect(ranked.map(({ name }) => name)).toEqual(["beacon", "other"]);
  });

  test("a document is found by its text as long as the text exists", async () => {
    const [row] = await sql`insert into document (name, resource_type, created_at, updated_at)
      values ('Runbook', 'reference', now(), now()) returning id`;
    const text = (content: string) => sql`
      insert into document_content (document_id, content, hash, updated_at)
      values (${row!.id}, ${content}, sha256(${content}::text::bytea), now())
      on conflict (document_id) do update set content = excluded.content, hash = excluded.hash`;
    const finds = async (word: string) =>
      (await sql`select from document where search @@ to_tsquery('english', ${word})`).length;
    await text("restart the kraken");
    expect([await finds("kraken"), await finds("runbook"), await finds("hydra")]).toEqual([1, 1, 0]);
    await text("restart the hydra");
    expect([await finds("kraken"), await finds("hydra")]).toEqual([0, 1]);
    await sql`update document set description = 'about monsters'`;
    expect([await finds("monster"), await finds("hydra")]).toEqual([1, 1]);
    await sql`delete from document_content`;
    expect(await finds("hydra")).toBe(0);
  });

  test("texts too long for a search vector are accepted", async () => {
    // Words of letters that take 4 bytes each (Deseret), none of them twice.
    const letter = (n: number) => String.fromCodePoint(0x10428 + (n % 40));
    const word = (n: number) =>
      [n, n / 40, n / 1600, n / 64_000, 7, 9].map((at) => letter(Math.floor(at))).join("");
    const manyFrom = (from: number) => Array.from({ length: 28_000 }, (_, n) => word(from + n)).join(" ");
    const [one, other] = [manyFrom(0), manyFrom(28_000)];
    await sql`insert into application (name, description, uri, created_at, updated_at)
      values ('wide', ${one}, ${other}, now(), now())`;
    await sql`delete from application`;
    const words = Array.from({ length: 200_000 }, (_, n) => `word${n.toString(36)}`).join(" ");
    await sql`insert into definition (text, created_at, updated_at) values (${words}, now(), now())`;
    await sql`delete from definition`;
  });
});
