import { expect, test } from "bun:test";
import { join } from "node:path";
import {
  contentOf,
  createDatabaseOn,
  hostileRevisions,
  temporaryDirectory,
  using,
} from "../../tests/support/database/backup.ts";
import { testServerUrl } from "../../tests/support/database/database.ts";
import { useDebianBackups } from "../../tests/support/database/debian_postgres_backup.ts";
import { testRevision } from "../../tests/support/database/revision.ts";
import { upgrade } from "../revision/upgrade.ts";
import { dump } from "./dump.ts";
import { makeTables } from "./load.ts";
import { restore } from "./restore.ts";

// Revisions that cannot run in a transaction, which a restore runs again in one.

const backups = useDebianBackups();
const { options } = backups;
const run = (url: string, statements: string) =>
  using(url, async (sql) => void (await sql.unsafe(statements)));

const cases: [string, () => string | Promise<string>][] = [
  ["PostgreSQL of Debian", () => backups.debian.url],
  ["the embedded PostgreSQL", testServerUrl],
];

const alone = (id: string, parent: string, up: string) =>
  testRevision(id, [parent], `-- svc: no-transaction\n${up}`, "", { transactional: false });
const commits = "do $$ begin update egg set chicken = chicken; commit; end $$";
const maintained = (role: string) => [
  ...hostileRevisions,
  alone(
    "4_vacuum",
    "3_index",
    "vacuum analyze many -- all of it\n; analyze egg; reindex table concurrently many",
  ),
  alone(
    "5_index",
    "4_vacuum",
    'create index /* concurrently */ concurrently "concurrently" on egg (chicken); drop index concurrently if exists "concurrently"',
  ),
  testRevision(
    "6_settings",
    ["5_index"],
    `create table listed (id int) partition by list (id); create table listed_a partition of listed for values in (1);
     create temp table x (); set datestyle = 'german'; set role ${role}`,
  ),
  alone("7_detach", "6_settings", "alter table listed detach partition listed_a concurrently"),
  testRevision(
    "8_again",
    ["7_detach"],
    `create temp table x (); create table dated (day date default '3/4/2026');
     do $$ begin assert current_user = session_user; end $$;
     -- Only DETACH CONCURRENTLY adds it.
     alter table listed_a drop constraint if exists listed_a_id_check`,
  ),
];

async function databaseAt(server: string, revisions: typeof hostileRevisions) {
  const database = await createDatabaseOn(server);
  // Each in a session of its own.
  for (const { id } of revisions) await upgrade({ url: database.url, revisions, target: id });
  return database;
}

test.each(cases)("%s: maintenance is left out, and settings are reset", async (_name, serverOf) => {
  const server = await serverOf();
  await using directory = await temporaryDirectory();
  const role = `svc_test_${crypto.randomUUID().slice(0, 8)}`;
  const maintenance = maintained(role);
  await run(server, `create role ${role} superuser`);
  await using _role = { [Symbol.asyncDispose]: () => run(server, `drop role ${role}`) };
  await using database = await databaseAt(server, maintenance);
  const path = join(directory.path, "backup");
  const before = await contentOf(database.url);
  const notices: string[] = [];
  const notice = (message: string) => notices.push(message);
  const more = { revisions: maintenance, notice };
  await dump(options(database.url, path, more));
  await restore(options(database.url, path, more));
  expect(await contentOf(database.url)).toEqual(before);
  expect(notices).toEqual([]);
});

test("a revision that cannot run in a transaction is refused when the dump is written", async () => {
  await using directory = await temporaryDirectory();
  const path = join(directory.path, "backup");
  const procedure = testRevision(
    "4_procedure",
    ["3_index"],
    "create procedure c() language plpgsql as $$ begin commit; end $$",
  );
  const cases = [
    [alone("4_commits", "3_index", commits)],
    [procedure, alone("5_call", "4_procedure", "call c()")],
  ];
  for (const more of cases) {
    const revisions = [...hostileRevisions, ...more];
    await using database = await databaseAt(await testServerUrl(), revisions);
    const detail = await dump(options(database.url, path, { revisions })).catch((error) => error.detail);
    expect(detail).toBe(
      `Revision ${more.at(-1)!.id} has a statement (CALL, or DO with COMMIT) that a restore could not run in its transaction: back up with pg_dump`,
    );
    await using other = await createDatabaseOn(await testServerUrl());
    const made = using(other.url, (sql) => sql.begin((tx) => makeTables(tx, revisions, revisions)));
    expect(await made.catch((error) => error.detail)).toBe(
      `The tables cannot be created in one transaction, nothing was changed: up.sql of revision ${more.at(-1)!.id}: invalid transaction termination`,
    );
  }
});
