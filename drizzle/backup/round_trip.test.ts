import { beforeAll, describe, expect, test } from "bun:test";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { TestClock } from "../../tests/support/clock.ts";
import {
  contentOf,
  createDatabaseOn,
  createHostile,
  hostileRevisions,
  insertHostileRows,
  temporaryDirectory,
  using,
} from "../../tests/support/database/backup.ts";
import { testServerUrl } from "../../tests/support/database/database.ts";
import { type DebianServer, debianServer } from "../../tests/support/database/debian_postgres.ts";
import { testRevision } from "../../tests/support/database/revision.ts";
import { dropAll } from "../revision/drop.ts";
import { upgrade } from "../revision/upgrade.ts";
import { type DumpOptions, dump } from "./dump.ts";
import { readRows, verifyBackup } from "./reader.ts";
import { type RestoreOptions, restore } from "./restore.ts";
import { BackupWriter } from "./writer.ts";

let debian: DebianServer;
let embedded: string;
beforeAll(async () => {
  [debian, embedded] = [await debianServer(), await testServerUrl()];
});

const base = { release: "1.2.3", clock: new TestClock(), revisions: hostileRevisions };

function options(url: string, path: string, more: Partial<DumpOptions & RestoreOptions> = {}) {
  const confirm = async () => {
    throw new Error("asked");
  };
  return { ...base, url, path, confirm, ...more };
}

const cases: [string, () => string][] = [
  ["PostgreSQL of Debian", () => debian.url],
  ["the embedded PostgreSQL", () => embedded],
];

describe.each(cases)("%s", (_name, server) => {
  test("dump, drop, restore and dump again keep the content", async () => {
    await using directory = await temporaryDirectory();
    await using database = await createHostile(server());
    const [first, second] = [join(directory.path, "first"), join(directory.path, "second")];
    const before = await contentOf(database.url);
    const dumped = await dump(options(database.url, first));
    const rows = Object.entries(before).filter(([name]) => !/^schema$|_seq"?$|many_count/.test(name));
    expect(dumped).toEqual({
      bytes: (await stat(first)).size,
      tables: rows.length,
      rows: rows.reduce((sum, [, list]) => sum + (list as string[]).length, 0),
      heads: ["3_index"],
    });
    expect((await stat(first)).mode & 0o777).toBe(0o600);
    await dropAll({ url: database.url });
    expect(await restore(options(database.url, first))).toEqual({ ...dumped, applied: [] });
    expect(await contentOf(database.url)).toEqual(before);
    await dump(options(database.url, second));
    await using other = await createDatabaseOn(server());
    await restore(options(other.url, second));
    expect(await contentOf(other.url)).toEqual(before);
    expect(await decoded(second)).toEqual(await decoded(first));
    expect((await readdir(directory.path)).sort()).toEqual(["first", "second"]);
  });

  test("an older backup is upgraded to head, also when it replaces a newer database", async () => {
    await using directory = await temporaryDirectory();
    await using database = await createDatabaseOn(server());
    const path = join(directory.path, "backup");
    await upgrade({ url: database.url, revisions: hostileRevisions.slice(0, 1) });
    await runStatement(database.url, "insert into seeded values ('three', 3)");
    expect(await dump(options(database.url, path))).toMatchObject({ heads: ["1_tables"] });
    await upgrade({ url: database.url, revisions: hostileRevisions });
    await insertHostileRows(database.url);
    const asked: number[] = [];
    const confirm = async ({ tables }: { tables: number }) => void asked.push(tables);
    const result = await restore(options(database.url, path, { confirm }));
    expect(result).toMatchObject({ heads: ["1_tables"], applied: ["2_many", "3_index"], rows: 4 });
    // Without partitions and views.
    expect(asked).toEqual([8]);
    const content = await contentOf(database.url);
    expect(content).toMatchObject({
      "public.seeded": ["(one,1)", "(three,3)", "(two,2)"],
      "public.many": [],
    });
    await using fresh = await createDatabaseOn(server());
    await upgrade({ url: fresh.url, revisions: hostileRevisions });
    expect(content.schema).toBe((await contentOf(fresh.url)).schema);
  });

  test("odd tables are replaced: without columns, with references between schemas, with a check that uses the path", async () => {
    await using directory = await temporaryDirectory();
    await using database = await createDatabaseOn(server());
    const path = join(directory.path, "backup");
    const revisions = [
      testRevision(
        "1_two",
        [],
        `create table one (id int primary key); create schema "Odd schema";
         create table "Odd schema".one (id int references one (id));
         create function "Odd schema".f(one) returns int language sql as 'select $1.id';
         create function is_known(int) returns bool language plpgsql as
           'begin return exists (select from one where id = $1); end';
         create table two (id int check (is_known(id)));
         create table nothing ()`,
      ),
    ];
    await upgrade({ url: database.url, revisions });
    await runStatement(
      database.url,
      `insert into one values (1); insert into "Odd schema".one values (1); insert into nothing default values; insert into two values (1)`,
    );
    const before = await contentOf(database.url);
    await dump(options(database.url, path, { revisions }));
    await runStatement(database.url, `delete from "Odd schema".one; delete from one; delete from nothing`);
    await restore(options(database.url, path, { revisions, confirm: async () => {} }));
    expect(await contentOf(database.url)).toEqual(before);
  });

  test("a missing database is created, and dropped again if the restore fails", async () => {
    await using directory = await temporaryDirectory();
    await using database = await createHostile(server());
    await using gone = await createDatabaseOn(server());
    const path = join(directory.path, "backup");
    await dump(options(database.url, path));
    await runStatement(database.url, `drop database ${gone.name}`);
    const reason = new Error("stopped");
    const stop = new AbortController();
    const progress = ({ doing }: { doing: string }) => {
      if (doing === "restoring") stop.abort(reason);
    };
    const stopped = restore(options(gone.url, path, { signal: stop.signal, progress }));
    expect(await stopped.catch((error) => error)).toBe(reason);
    const there = () =>
      using(database.url, (sql) =>
        sql`select from pg_database where datname = ${gone.name}`.then((r) => r.length),
      );
    expect(await there()).toBe(0);
    await restore(options(gone.url, path));
    expect(await contentOf(gone.url)).toEqual(await contentOf(database.url));
  });

  test("the owner needs no other privilege; a dump without read access names the table", async () => {
    await using directory = await temporaryDirectory();
    const path = join(directory.path, "backup");
    const role = `owner_${crypto.randomUUID().slice(0, 8)}`;
    await runStatement(server(), `create role ${role} login password 'p:a\\ss'`);
    {
      await using database = await createDatabaseOn(server(), `owner ${role}`);
      const url = Object.assign(new URL(database.url), { username: role, password: "p:a\\ss" }).href;
      await upgrade({ url, revisions: hostileRevisions });
      await insertHostileRows(url);
      const before = await contentOf(url);
      await dump(options(url, path));
      await restore(options(url, path, { confirm: async () => {} }));
      expect(await contentOf(url)).toEqual(before);
      await runStatement(database.url, `reassign owned by ${role} to current_user`);
      const refused = await dump(options(url, path)).catch((error) => error);
      expect(refused.detail).toMatch(
        /^PostgreSQL: permission denied for table .*\. Dump as the owner of the tables, or grant the right to read them \(grant pg_read_all_data to NAME\)$/,
      );
      const kept = await restore(options(url, path, { confirm: async () => {} })).catch((error) => error);
      expect(kept.detail).toStartWith("PostgreSQL does not let this user do that");
      expect(await contentOf(database.url)).toEqual(before);
      await runStatement(database.url, `drop owned by ${role}`);
    }
    await runStatement(server(), `drop role ${role}`);
  });
});

describe("a failure half-way leaves the database as it was", () => {
  test("for a row that its table rejects, and row counts that differ from the backup's", async () => {
    await using directory = await temporaryDirectory();
    await using database = await createHostile(embedded);
    const before = await contentOf(database.url);
    const good = join(directory.path, "good");
    await dump(options(database.url, good));
    const confirm = async () => {};
    const orphan = await rewritten(good, "egg", (rows) => rows.replace(/\t1\n/, "\t2\n"));
    const refused = await restore(options(database.url, orphan, { confirm })).catch((error) => error);
    expect(refused.detail).toMatch(
      /^The backup cannot be loaded, nothing was changed: insert or update on table "egg"/,
    );
    expect(await contentOf(database.url)).toEqual(before);
    const fewer = await rewritten(good, "seeded", (rows) => rows.slice(rows.indexOf("\n") + 1));
    const short = await restore(options(database.url, fewer, { confirm })).catch((error) => error);
    expect(short.detail).toContain("seeded has 0 rows where the backup has 1: nothing was changed");
    const secret = await rewritten(good, "egg", (rows) => rows.replace(/^1/, "hunter2"));
    const value = await restore(options(database.url, secret, { confirm })).catch((error) => error);
    expect(value.detail).toBe("The backup cannot be loaded, nothing was changed: a value is refused (22P02)");
    expect(await contentOf(database.url)).toEqual(before);
  });
});

describe("what others created, in a schema of svc", () => {
  const theirs = `create table "By Hand" (id serial, at timestamptz default now()); insert into "By Hand" default values;
    create view seen as select * from "By Hand"; create materialized view snapshot as select clock_timestamp() as at;
    create type mode as enum ('on'); create domain short as text; create sequence "Invoice ""no""" start 4711;
    create function f(mode) returns int language sql as 'select 1'; create table gone (m mode)`;
  const stateOf = (url: string) =>
    using(url, (sql) =>
      sql.unsafe(
        'select (select array_agg(t::text) from "By Hand" t) as rows, (select at::text from snapshot) as at, nextval(\'"Invoice ""no"""\')::int as next, f(\'on\') as f',
      ),
    );

  test("stays: it is neither dumped, nor dropped, nor counted", async () => {
    await using directory = await temporaryDirectory();
    await using database = await createHostile(embedded);
    const path = join(directory.path, "backup");
    const { tables } = await dump(options(database.url, path));
    const counted: number[] = [];
    const confirm = async ({ objects }: { objects: number }) => void counted.push(objects);
    await restore(options(database.url, path, { confirm }));
    await runStatement(database.url, theirs);
    const notices: string[] = [];
    const notice = (message: string) => void notices.push(message);
    expect((await dump(options(database.url, path, { notice }))).tables).toBe(tables);
    expect(notices).toEqual(["left out, because no revision of svc creates it: By Hand, gone"]);
    expect((await verifyBackup(path)).header.sequences.map(({ name }) => name)).not.toContain('Invoice "no"');
    const [state] = await stateOf(database.url);
    await restore(options(database.url, path, { confirm }));
    expect(counted[1]).toBe(counted[0]!);
    expect([...(await stateOf(database.url))]).toEqual([{ ...state!, next: 4712 } as never]);
  });

  test("stops the restore if it depends on what svc created, and is named", async () => {
    await using directory = await temporaryDirectory();
    await using database = await createHostile(embedded);
    const path = join(directory.path, "backup");
    await dump(options(database.url, path));
    const before = await contentOf(database.url);
    for (const [create, what, drop] of [
      ["create view theirs as select * from seeded", "view theirs", "drop view theirs"],
      ["create table theirs (s seeded)", "column s of table theirs", "drop table theirs"],
      [
        "create function theirs(seeded) returns int language sql as 'select 1'",
        "function theirs(seeded)",
        "drop function theirs",
      ],
    ] as const) {
      await runStatement(database.url, create);
      const refused = await restore(options(database.url, path, { confirm: async () => {} })).catch(
        (error) => error,
      );
      expect(refused.detail).toStartWith(`Nothing was dropped: ${what} depends on `);
      await runStatement(database.url, drop);
      expect(await contentOf(database.url)).toEqual(before);
    }
  });

  test("stops the restore if it has the name of a table in the backup", async () => {
    await using directory = await temporaryDirectory();
    await using database = await createHostile(embedded);
    await using other = await createDatabaseOn(embedded);
    const path = join(directory.path, "backup");
    await dump(options(database.url, path));
    await runStatement(other.url, "create table egg (theirs text); insert into egg values ('kept')");
    const refused = await restore(options(other.url, path)).catch((error) => error);
    expect(refused.detail).toStartWith(
      "egg is in the backup, but no revision that this database records creates it: ",
    );
    expect(await using(other.url, (sql) => sql`select theirs from egg`)).toHaveLength(1);
  });
});

test("what revisions create by dynamic SQL is svc's", async () => {
  await using directory = await temporaryDirectory();
  await using database = await createDatabaseOn(embedded);
  const path = join(directory.path, "backup");
  const up = `do $$ begin create table a (id int); execute 'create table "B b" (id int)';
      execute format('create table %I (id int)', 'd'); create view v as select 1 as word; end $$;
    select 1 as id into c; create index on a (id); create function f() returns int language sql as 'select 1'; alter function f() rename to g`;
  const revisions = [testRevision("1", [], up)];
  await upgrade({ url: database.url, revisions });
  // Words of these revisions, and no objects of theirs.
  await runStatement(
    database.url,
    `insert into a values (1); insert into "B b" values (2); insert into d values (3);
     create table word (id int); create table execute (id int); insert into word values (4); create view index as select 5`,
  );
  const before = await contentOf(database.url);
  expect(await dump(options(database.url, path, { revisions }))).toMatchObject({ tables: 5, rows: 5 });
  await restore(options(database.url, path, { revisions, confirm: async () => {} }));
  expect(await contentOf(database.url)).toEqual(before);
});

describe("refused before anything changes", () => {
  test("a manually added column is restored with its values, unless its type is unknown", async () => {
    await using directory = await temporaryDirectory();
    await using database = await createHostile(embedded);
    const path = join(directory.path, "backup");
    await runStatement(
      database.url,
      `alter table egg add column "the ""yolk""" numeric(5, 2), add column m mood, add column due timestamptz(3)[];
       update egg set "the ""yolk""" = 1.5, m = 'calm'`,
    );
    await dump(options(database.url, path));
    const before = await contentOf(database.url);
    const notices: string[] = [];
    const notice = (message: string) => notices.push(message);
    await using other = await createDatabaseOn(embedded);
    await restore(options(other.url, path, { notice }));
    expect(await contentOf(other.url)).toEqual(before);
    const without = "it is restored with its values, without a default or constraints";
    expect(notices).toEqual(
      ['the "yolk"', "m", "due"].map((name) => `no revision creates the column ${name} of egg: ${without}`),
    );
    await runStatement(
      database.url,
      "create type by_hand as enum ('a'); alter table egg add column hand by_hand",
    );
    const now = await contentOf(database.url);
    await dump(options(database.url, path));
    const refused = restore(options(database.url, path, { confirm: async () => {} }));
    expect(await refused.catch((error) => error.detail)).toBe(
      "The backup holds the column hand of egg, which no revision creates: it was added by hand",
    );
    expect(await contentOf(database.url)).toEqual(now);
  });

  test("a newer release's backup, an edited revision, no consent", async () => {
    await using directory = await temporaryDirectory();
    await using database = await createHostile(debian.url);
    const before = await contentOf(database.url);
    const path = join(directory.path, "backup");
    await dump(options(database.url, path));
    const detail = (more: Partial<RestoreOptions>) =>
      restore(options(database.url, path, more)).catch((error) => error.detail ?? error.message);
    const confirm = async () => {};
    expect(await detail({ revisions: hostileRevisions.slice(0, 2), confirm })).toBe(
      "The backup has revision 3_index, which this release does not know: it is newer. Restore it with the release that made it",
    );
    const edited = [testRevision("1_tables", [], "select 1"), ...hostileRevisions.slice(1)];
    expect(await detail({ revisions: edited, confirm })).toBe(
      "Revision 1_tables was edited after the backup was made: restore its files first",
    );
    expect(await detail({})).toBe("asked");
    expect(await contentOf(database.url)).toEqual(before);
  });

  test("a dump that may not read everything gives the advice that helps", async () => {
    await using directory = await temporaryDirectory();
    const path = join(directory.path, "backup");
    const role = `reader_${crypto.randomUUID().slice(0, 8)}`;
    await runStatement(embedded, `create role ${role} login password 'x'`);
    {
      await using database = await createHostile(embedded);
      const url = Object.assign(new URL(database.url), { username: role, password: "x" }).href;
      const detail = () => dump(options(url, path)).catch((error) => error.detail);
      await runStatement(
        database.url,
        `grant select on all tables in schema public to ${role}; revoke select on revision from ${role}`,
      );
      expect(await detail()).toMatch(
        /^PostgreSQL: permission denied for table .* or grant the right to read them/,
      );
      await runStatement(
        database.url,
        `grant select on all tables in schema public to ${role};
         do $$ declare s text; begin for s in select nspname from pg_namespace where nspname !~ '^pg_' loop
           execute format('grant usage on schema %I to ${role}; grant select on all tables in schema %I to ${role}; grant select on all sequences in schema %I to ${role}', s, s, s);
         end loop; end $$;
         alter table seeded enable row level security; alter table seeded force row level security`,
      );
      expect(await detail()).toBe(
        'PostgreSQL: query would be affected by row-level security policy for table "seeded". Dump as a role that sees every row (alter role NAME bypassrls)',
      );
      await runStatement(database.url, `drop owned by ${role}`);
    }
    await runStatement(embedded, `drop role ${role}`);
    expect(await readdir(directory.path)).toEqual([]);
  });

  test("a text that is not UTF-8, in a database with the encoding SQL_ASCII", async () => {
    await using directory = await temporaryDirectory();
    await using database = await createDatabaseOn(
      embedded,
      "template template0 encoding sql_ascii locale_provider libc lc_collate 'C' lc_ctype 'C'",
    );
    await upgrade({ url: database.url, revisions: hostileRevisions });
    await runStatement(database.url, "insert into seeded values (convert_from('\\xff', 'sql_ascii'), 9)");
    const refused = dump(options(database.url, join(directory.path, "x")));
    expect(await refused.catch((error) => error.detail)).toStartWith("A text is not valid UTF-8 (");
    expect(await readdir(directory.path)).toEqual([]);
  });

  test("an archive of pg_dump, and a database without our schema", async () => {
    await using directory = await temporaryDirectory();
    await using database = await createDatabaseOn(debian.url);
    const path = join(directory.path, "backup");
    const refused = await dump(options(database.url, path)).catch((error) => error);
    expect(refused.detail).toBe("This database has no schema of svc: there is nothing to back up");
    await Bun.write(path, "PGDMP\u0001 and more");
    const foreign = await restore(options(database.url, path)).catch((error) => error);
    expect(foreign.detail).toBe(
      `${path} is not a backup of svc: it is an archive of pg_dump; load it with pg_restore`,
    );
  });
});

async function runStatement(url: string, statement: string): Promise<void> {
  await using(url, (sql) => sql.unsafe(statement));
}

/** The rows of a portable file, sorted, by table. */
async function decoded(path: string): Promise<unknown> {
  const content = await verifyBackup(path);
  const { header } = content;
  const text = header.tables.map(() => "");
  const decoder = new TextDecoder("latin1");
  for await (const { table, rows } of readRows(path, content)) text[table] += decoder.decode(rows);
  const tables = header.tables.map((table, index) => ({ ...table, rows: text[index]!.split("\n").sort() }));
  return { tables, sequences: header.sequences, revisions: header.revisions };
}

/** A copy of a portable file with the rows of one table changed; the summary stays. */
async function rewritten(path: string, name: string, change: (rows: string) => string): Promise<string> {
  const content = await verifyBackup(path);
  const { header, summary } = content;
  const copy = `${path}.${name}`;
  await Bun.write(copy, "");
  await using writer = await BackupWriter.open(copy, header);
  for await (const { table, rows } of readRows(path, content)) {
    const changed =
      header.tables[table]!.name === name ? Buffer.from(change(Buffer.from(rows).toString())) : rows;
    if (!writer.add(table, changed)) await writer.drained;
  }
  await writer.finish(summary.rows);
  return copy;
}
