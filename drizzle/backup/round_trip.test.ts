import { beforeAll, describe, expect, test } from "bun:test";
import { chmod, readdir, stat } from "node:fs/promises";
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
import { type DumpOptions, dump, type Format } from "./dump.ts";
import { readPortable, verifyPortable } from "./portable_reader.ts";
import { PortableWriter } from "./portable_writer.ts";
import { type RestoreOptions, restore } from "./restore.ts";

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
  // Only the tools of Debian's server, whatever else this machine has.
  return { ...base, url, path, env: { PATH: debian.tools }, tools: () => [], confirm, ...more };
}

const cases: [string, () => string, Format][] = [
  ["PostgreSQL with its tools, custom", () => debian.url, "custom"],
  ["PostgreSQL with its tools, portable", () => debian.url, "portable"],
  ["the embedded PostgreSQL, portable", () => embedded, "portable"],
];

describe.each(cases)("%s", (_name, server, format) => {
  test("dump, drop, restore and dump again keep the content", async () => {
    await using directory = await temporaryDirectory();
    await using database = await createHostile(server());
    const [first, second] = [join(directory.path, "first"), join(directory.path, "second")];
    const before = await contentOf(database.url);
    const dumped = await dump(options(database.url, first, { format }));
    const rows = Object.entries(before).filter(([name]) => !/^schema$|_seq"?$|many_count/.test(name));
    expect(dumped).toEqual({
      format,
      bytes: (await stat(first)).size,
      tables: rows.length,
      rows: rows.reduce((sum, [, list]) => sum + (list as string[]).length, 0),
      heads: ["3_index"],
    });
    expect((await stat(first)).mode & 0o777).toBe(0o600);
    await dropAll({ url: database.url });
    expect(await restore(options(database.url, first))).toEqual({ ...dumped, applied: [] });
    expect(await contentOf(database.url)).toEqual(before);
    await dump(options(database.url, second, { format }));
    await using other = await createDatabaseOn(server());
    await restore(options(other.url, second));
    expect(await contentOf(other.url)).toEqual(before);
    if (format === "portable") expect(await decoded(second)).toEqual(await decoded(first));
    expect((await readdir(directory.path)).sort()).toEqual(["first", "second"]);
  });

  test("an older backup is upgraded to head, also when it replaces a newer database", async () => {
    await using directory = await temporaryDirectory();
    await using database = await createDatabaseOn(server());
    const path = join(directory.path, "backup");
    await upgrade({ url: database.url, revisions: hostileRevisions.slice(0, 1) });
    await runStatement(database.url, "insert into seeded values ('three', 3)");
    expect(await dump(options(database.url, path, { format }))).toMatchObject({ heads: ["1_tables"] });
    await upgrade({ url: database.url, revisions: hostileRevisions });
    await insertHostileRows(database.url);
    const asked: number[] = [];
    const confirm = async ({ tables }: { tables: number }) => void asked.push(tables);
    const result = await restore(options(database.url, path, { confirm }));
    expect(result).toMatchObject({ heads: ["3_index"], applied: ["2_many", "3_index"], rows: 4 });
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
    await dump(options(database.url, path, { format, revisions }));
    await runStatement(database.url, `delete from "Odd schema".one; delete from one; delete from nothing`);
    await restore(options(database.url, path, { revisions, confirm: async () => {} }));
    expect(await contentOf(database.url)).toEqual(before);
  });

  test("a missing database is created, and dropped again if the restore fails", async () => {
    await using directory = await temporaryDirectory();
    await using database = await createHostile(server());
    await using gone = await createDatabaseOn(server());
    const path = join(directory.path, "backup");
    await dump(options(database.url, path, { format }));
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
      await dump(options(url, path, { format }));
      await restore(options(url, path, { confirm: async () => {} }));
      expect(await contentOf(url)).toEqual(before);
      await runStatement(database.url, `reassign owned by ${role} to current_user`);
      const refused = await dump(options(url, path, { format })).catch((error) => error);
      expect(refused.detail).toMatch(
        /^PostgreSQL: permission denied for table .*\. Dump as the owner of the tables$/,
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
    await dump(options(database.url, good, { format: "portable" }));
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

  test("for a pg_restore that fails in any section", async () => {
    await using directory = await temporaryDirectory();
    await using database = await createHostile(debian.url);
    const before = await contentOf(database.url);
    const path = join(directory.path, "backup");
    await dump(options(database.url, path));
    for (const section of ["pre-data", "data", "post-data"]) {
      // Half of its output, then an error.
      const script = `#!/bin/sh
        case "$*" in *--section=${section}*) ${debian.tools}/pg_restore "$@" | head -c 2000; echo "pg_restore: error: made up" >&2; exit 1 ;; esac
        exec ${debian.tools}/pg_restore "$@"`;
      await Bun.write(join(directory.path, "pg_restore"), script);
      await chmod(join(directory.path, "pg_restore"), 0o755);
      const env = { PATH: `${directory.path}:/usr/bin:/bin` };
      const failed = restore(options(database.url, path, { env, confirm: async () => {} }));
      expect(await failed.catch((error) => error.detail)).toBe("pg_restore: made up");
      expect(await contentOf(database.url)).toEqual(before);
    }
  });

  test("for an archive whose rows differ from its declaration, and one that lacks a table", async () => {
    await using directory = await temporaryDirectory();
    await using database = await createHostile(debian.url);
    const before = await contentOf(database.url);
    const path = join(directory.path, "backup");
    await dump(options(database.url, path));
    const env = { PATH: `${directory.path}:${debian.tools}:/usr/bin:/bin` };
    /** Pipes pg_restore's output through sed if its arguments contain `argument`. */
    const edited = async (argument: string, sed: string) => {
      const script = `#!/bin/sh
        case "$*" in *${argument}*) ${debian.tools}/pg_restore "$@" | sed '${sed}' ;; *) exec ${debian.tools}/pg_restore "$@" ;; esac`;
      await Bun.write(join(directory.path, "pg_restore"), script);
      await chmod(join(directory.path, "pg_restore"), 0o755);
    };
    const detail = () =>
      restore(options(database.url, path, { env, confirm: async () => {} })).catch((error) => error.detail);
    await edited("--section=data", "/^COPY public.seeded /,/^..$/d");
    expect(await detail()).toBe("seeded has 0 rows where the backup has 1: nothing was changed");
    await edited("--section=data", "s/^3_index/3_other/");
    expect(await detail()).toBe(
      "The restored revisions differ from those of the backup: nothing was changed",
    );
    expect(await contentOf(database.url)).toEqual(before);
    const dumped = () => dump(options(database.url, path, { env })).catch((error) => error.detail);
    await edited("--section=data", "/^COPY public.seeded /,/^..$/d");
    expect(await dumped()).toBe("pg_dump did not write the rows of seeded: nothing was written");
    await edited("--section=data", "s/^COPY public.seeded /COPY public.sneaked /");
    expect(await dumped()).toBe(
      'pg_dump did not write the rows of seeded, "public"."sneaked": nothing was written',
    );
  });
});

describe("refused before anything changes", () => {
  test("a portable backup of tables that no revision creates", async () => {
    await using directory = await temporaryDirectory();
    await using database = await createHostile(embedded);
    await runStatement(
      database.url,
      `create table "By Hand" (); create schema more; create table more.egg ()`,
    );
    const refused = dump(options(database.url, join(directory.path, "x"), { format: "portable" }));
    expect(await refused.catch((error) => error.detail)).toStartWith(
      "No revision creates more.egg, By Hand, so the portable format cannot restore it",
    );
    expect(await readdir(directory.path)).toEqual([]);
  });

  test("custom: a database with a foreign table", async () => {
    await using directory = await temporaryDirectory();
    await using database = await createHostile(debian.url);
    await runStatement(
      database.url,
      `create foreign data wrapper nothing; create server elsewhere foreign data wrapper nothing;
       create foreign table "Far" (id int) server elsewhere`,
    );
    const refused = dump(options(database.url, join(directory.path, "x"), { format: "custom" }));
    expect(await refused.catch((error) => error.detail)).toBe(
      "A backup does not contain the server of the foreign table Far, so it could not be restored: move it to another database, or drop it",
    );
    expect(await readdir(directory.path)).toEqual([]);
  });

  test("a manually added column is restored with its values, unless its type is unknown", async () => {
    await using directory = await temporaryDirectory();
    await using database = await createHostile(embedded);
    const path = join(directory.path, "backup");
    await runStatement(
      database.url,
      `alter table egg add column "the ""yolk""" numeric(5, 2), add column m mood, add column due timestamptz(3)[];
       update egg set "the ""yolk""" = 1.5, m = 'calm'`,
    );
    await dump(options(database.url, path, { format: "portable" }));
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
    await dump(options(database.url, path, { format: "portable" }));
    const refused = restore(options(database.url, path, { confirm: async () => {} }));
    expect(await refused.catch((error) => error.detail)).toBe(
      "The backup holds the column hand of egg, which no revision creates: it was added by hand",
    );
    expect(await contentOf(database.url)).toEqual(now);
  });

  test("portable: a manually added sequence is restored at its position", async () => {
    await using directory = await temporaryDirectory();
    await using database = await createHostile(embedded);
    await using other = await createDatabaseOn(embedded);
    const path = join(directory.path, "backup");
    await runStatement(
      database.url,
      `create sequence "Invoice ""no"""; select setval('"Invoice ""no"""', 4711);
       create sequence down increment -1; select nextval('down'), nextval('down');
       alter table egg add column number serial; create schema more`,
    );
    await dump(options(database.url, path, { format: "portable" }));
    const before = await contentOf(database.url);
    const notices: string[] = [];
    const notice = (message: string) => notices.push(message);
    await restore(options(other.url, path, { notice }));
    const after = await contentOf(other.url);
    for (const name of ['public."Invoice ""no"""', "public.down", "public.egg_number_seq", "public.egg"]) {
      expect(after[name]).toEqual(before[name]);
    }
    expect(notices.filter((one) => one.includes("sequence"))).toEqual(
      ['Invoice "no"', "down", "egg_number_seq"].map(
        (name) =>
          `no revision creates the sequence ${name}: it is restored at its position, with default options`,
      ),
    );
    await runStatement(database.url, "create sequence more.orders");
    await dump(options(database.url, path, { format: "portable" }));
    expect(
      await restore(options(other.url, path, { confirm: async () => {} })).catch((error) => error.detail),
    ).toBe("The backup holds the sequence more.orders, which no revision creates: it was added by hand");
  });

  test.each(["custom", "portable"] as const)(
    "%s: a newer release's backup, an edited revision, no consent",
    async (format) => {
      await using directory = await temporaryDirectory();
      await using database = await createHostile(debian.url);
      const before = await contentOf(database.url);
      const path = join(directory.path, "backup");
      await dump(options(database.url, path, { format }));
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
    },
  );

  test("an archive made by pg_dump alone, and a database without our schema", async () => {
    await using directory = await temporaryDirectory();
    await using database = await createDatabaseOn(debian.url);
    const path = join(directory.path, "backup");
    const refused = await dump(options(database.url, path)).catch((error) => error);
    expect(refused.detail).toBe("This database has no schema of svc: there is nothing to back up");
    await pgDump(database, path);
    const foreign = await restore(options(database.url, path)).catch((error) => error);
    expect(foreign.detail).toStartWith(`${path} does not end with the seal of svc database dump: `);
  });
});

/** As an administrator would run it. */
async function pgDump({ url, name }: { url: string; name: string }, path: string): Promise<void> {
  const { password, port, username } = new URL(url);
  const where = ["-h", "127.0.0.1", "-p", port, "-U", username, "-Fc", "-f", path, name];
  const { exitCode } = Bun.spawnSync([join(debian.tools, "pg_dump"), ...where], {
    env: { PGPASSWORD: password },
  });
  expect(exitCode).toBe(0);
}

async function runStatement(url: string, statement: string): Promise<void> {
  await using(url, (sql) => sql.unsafe(statement));
}

/** The rows of a portable file, sorted, by table. */
async function decoded(path: string): Promise<unknown> {
  const content = await verifyPortable(path);
  const { header } = content;
  const text = header.tables.map(() => "");
  const decoder = new TextDecoder("latin1");
  for await (const { table, rows } of readPortable(path, content)) text[table] += decoder.decode(rows);
  const tables = header.tables.map((table, index) => ({ ...table, rows: text[index]!.split("\n").sort() }));
  return { tables, sequences: header.sequences, revisions: header.revisions };
}

/** A copy of a portable file with the rows of one table changed; the summary stays. */
async function rewritten(path: string, name: string, change: (rows: string) => string): Promise<string> {
  const content = await verifyPortable(path);
  const { header, summary } = content;
  const copy = `${path}.${name}`;
  await Bun.write(copy, "");
  await using writer = await PortableWriter.open(copy, header);
  for await (const { table, rows } of readPortable(path, content)) {
    const changed =
      header.tables[table]!.name === name ? Buffer.from(change(Buffer.from(rows).toString())) : rows;
    if (!writer.add(table, changed)) await writer.drained;
  }
  await writer.finish(summary.rows);
  return copy;
}
