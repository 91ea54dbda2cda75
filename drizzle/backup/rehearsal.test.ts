import { expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import {
  contentOf,
  createDatabaseOn,
  hostileRevisions,
  insertHostileRows,
  temporaryDirectory,
  using,
} from "../../tests/support/database/backup.ts";
import { useDebianBackups } from "../../tests/support/database/debian_postgres_backup.ts";
import { testRevision } from "../../tests/support/database/revision.ts";
import { upgrade } from "../revision/upgrade.ts";
import { dump } from "./dump.ts";
import { type RestoreOptions, restore } from "./restore.ts";

const backups = useDebianBackups();
const { options, liveDatabase } = backups;

const detailOf = (work: Promise<unknown>) => work.then(String, (error) => error.detail ?? String(error));
const run = (url: string, statements: string) => using(url, (sql) => sql.unsafe(statements));
/** The databases in which a restore of this one tries the backup. */
const scratches = async ({ name }: { name: string }) => {
  const found = await run(
    backups.debian.url,
    `select datname from pg_database where shobj_description(oid, 'pg_database') = 'Temporary: svc database restore of ${name}'`,
  );
  return found.map(({ datname }) => datname);
};

test("a bad backup is detected while the tables stay in use, without disturbing anyone", async () => {
  await using directory = await temporaryDirectory();
  await using live = await liveDatabase();
  const path = join(directory.path, "backup");
  await dump(options(live.url, path));
  const before = await contentOf(live.url);
  const failing = testRevision("4_fails", ["3_index"], "select 1 / (count(*) - 1) from egg");
  const cases: [Partial<RestoreOptions>, string][] = [
    [
      { revisions: [...hostileRevisions, failing] },
      "This release cannot upgrade the backup to head, so nothing was changed: up.sql of revision 4_fails",
    ],
  ];
  for (const [more, reason] of cases) {
    await using(live.url, (sql) =>
      sql.begin(async (transaction) => {
        // A reader in the middle of its transaction, which a lock would have to wait for.
        await transaction`select count(*) from seeded`;
        expect(await detailOf(restore({ ...options(live.url, path), ...more }))).toContain(reason);
        await using(live.url, (other) => other`insert into seeded values ('meanwhile', 1)`);
        await using(live.url, (other) => other`delete from seeded where name = 'meanwhile'`);
      }),
    );
    expect(await contentOf(live.url)).toEqual(before);
    expect(await scratches(live)).toEqual([]);
  }
});

test("the database in which a backup is tried is dropped afterwards, and no other database is", async () => {
  await using directory = await temporaryDirectory();
  await using live = await liveDatabase();
  const path = join(directory.path, "backup");
  await dump(options(live.url, path));
  const seen = new Set<string>();
  const progress = async () => {
    for (const name of await scratches(live)) seen.add(name);
  };
  const theirs = `svc_restore_${randomBytes(8).toString("hex")}`;
  await run(backups.debian.url, `create database ${theirs}`);
  try {
    await restore({ ...options(live.url, path), progress });
    expect([...seen]).toEqual([expect.stringMatching(/^svc_restore_[0-9]+_[0-9]{13}$/)]);
    expect(await scratches(live)).toEqual([]);
  } finally {
    // Fails if it is not there.
    await run(backups.debian.url, `drop database ${theirs}`);
  }
});

test("without the right to create databases, the backup is restored in one transaction, with a notice", async () => {
  await using directory = await temporaryDirectory();
  const path = join(directory.path, "backup");
  const role = `owner_${crypto.randomUUID().slice(0, 8)}`;
  await run(backups.debian.url, `create role ${role} login password 'x'`);
  try {
    await using database = await createDatabaseOn(backups.debian.url, `owner ${role}`);
    const url = Object.assign(new URL(database.url), { username: role, password: "x" }).href;
    await upgrade({ url, revisions: hostileRevisions });
    await insertHostileRows(url);
    const before = await contentOf(url);
    await dump(options(url, path));
    const notices: string[] = [];
    await restore({ ...options(url, path), notice: (message) => notices.push(message) });
    expect(notices).toEqual([
      "this user may not create databases: the backup is checked in the transaction that loads it, and tables stay locked meanwhile",
    ]);
    expect(await contentOf(url)).toEqual(before);
  } finally {
    await run(backups.debian.url, `drop role ${role}`);
  }
});

test("a file that is replaced while it is being read is not restored", async () => {
  await using directory = await temporaryDirectory();
  await using live = await liveDatabase();
  const path = join(directory.path, "backup");
  await dump(options(live.url, path));
  await run(live.url, "delete from seeded");
  const before = await contentOf(live.url);
  const bytes = await Bun.file(path).bytes();
  const progress = async ({ doing }: { doing: string }) => {
    if (doing === "comparing") await Bun.write(path, bytes);
  };
  expect(await detailOf(restore({ ...options(live.url, path), progress }))).toBe(
    `${path} was replaced while it was read: nothing was changed. Run it again`,
  );
  expect(await contentOf(live.url)).toEqual(before);
});

test("a schema changed by hand is reported when it is restored", async () => {
  await using directory = await temporaryDirectory();
  await using live = await liveDatabase();
  const path = join(directory.path, "backup");
  await run(live.url, "alter table egg add column yolk int default 3");
  await dump(options(live.url, path));
  const notices: string[] = [];
  await restore({ ...options(live.url, path), notice: (message) => notices.push(message) });
  expect(notices).toContain(
    "the schema in the backup differs from what its revisions create (1 difference): svc database check --drift lists them afterwards",
  );
  expect(await run(live.url, "select distinct yolk from egg")).toMatchObject([{ yolk: 3 }]);
});

test("publications keep the tables that are replaced", async () => {
  await using directory = await temporaryDirectory();
  await using live = await liveDatabase();
  const path = join(directory.path, "backup");
  await run(live.url, 'create schema "S 1"; create table "S 1".t (id int primary key)');
  await dump(options(live.url, path));
  await run(
    live.url,
    `create table later (id int primary key);
     create publication "Odd one" for table seeded (name) where (name <> 'x'), "Odd ""Table""", parted, later;
     create publication whole for tables in schema "S 1"; create publication everything for all tables`,
  );
  const published = () =>
    run(live.url, "select * from pg_publication_tables order by pubname, schemaname, tablename");
  const before = await published();
  const notices: string[] = [];
  await restore({ ...options(live.url, path), notice: (message) => notices.push(message) });
  expect(await published()).toEqual(before);
  expect(notices.filter((notice) => notice.includes("publication"))).toEqual([
    "the subscribers of the publication Odd one still have the rows from before: subscribe them again",
  ]);
});
