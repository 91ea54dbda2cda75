import { beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { chmod, readdir } from "node:fs/promises";
import { join } from "node:path";
import { headsOf, readRevisions } from "../../../drizzle/revision/history.ts";
import { upgrade } from "../../../drizzle/revision/upgrade.ts";
import { sourceProgram, spawnSvc, svc, svcOnTerminal } from "../../../tests/support/cli/process.ts";
import {
  contentOf,
  createDatabaseOn,
  createPrepared,
  temporaryDirectory,
  using,
} from "../../../tests/support/database/backup.ts";
import { createTestDatabase } from "../../../tests/support/database/database.ts";
import { type DebianServer, debianServer } from "../../../tests/support/database/debian_postgres.ts";
import { smallDisk } from "../../../tests/support/database/small_disk.ts";
import { descendants, untilGone } from "../../../tests/support/process/processes.ts";
import { until } from "../../../tests/support/process/until.ts";

const file = "svc-backup.dump";
const [head] = headsOf(await readRevisions());

let debian: DebianServer;
beforeAll(async () => {
  debian = await debianServer();
});

/** A database on Debian's server, at head, with this many rows of random data. */
async function debianDatabase(rows = 3) {
  const database = await createPrepared(debian.url, "head", (url) => upgrade({ url }).then(() => {}));
  await fill(database.url, rows);
  return database;
}

async function fill(url: string, rows: number): Promise<void> {
  await using(
    url,
    (sql) => sql`
      insert into audit_log (at, actor, action, data)
      select now(), gen_random_uuid(), 'noise', jsonb_build_object('n', gen_random_uuid()) from generate_series(1, ${rows})`,
  );
}

/** The environment of `svc`, with only the tools of Debian's server. */
const env = (url: string, path = debian.tools) => ({ SVC_DATABASE_URL: url, PATH: path });
const failed = (line: string) => ({ code: 1, stdout: "", stderr: `svc: ${line}\n` });
const summary = (format: string, rows: number) =>
  new RegExp(
    `^(Wrote|Restored) ${file} \\(${format} format, [\\d.]+ kB, \\d+ tables, ${rows} row${rows === 1 ? "" : "s"}, revision ${head}\\)\\n$`,
  );
const revisions = (await readRevisions()).length;
/** Inserts a row into each table. */
const ownRows = revisions;

describe.each(["custom", "portable"] as const)("%s", (format) => {
  test("dumps and restores a file; without a terminal, replacing data needs --yes", async () => {
    await using directory = await temporaryDirectory();
    await using database = await debianDatabase();
    const run = (...args: string[]) => svc(["database", ...args], env(database.url), directory.path);
    const before = await contentOf(database.url);
    const dumped = await run("dump", "--format", format);
    expect(dumped).toEqual({
      code: 0,
      stdout: expect.stringMatching(summary(format, 3 + ownRows)),
      stderr: "",
    });
    expect(await readdir(directory.path)).toEqual([file]);
    await fill(database.url, 1);
    const more = await contentOf(database.url);
    const refused = await run("restore");
    const { port } = new URL(database.url);
    expect(refused.stderr).toMatch(
      new RegExp(
        `^svc: This replaces all \\d+ tables of the database ${database.name} on 127.0.0.1:${port}\\. There is no terminal for the confirmation: add --yes\\n$`,
      ),
    );
    expect([refused.code, refused.stdout, await contentOf(database.url)]).toEqual([1, "", more]);
    const restored = await run("restore", "--yes");
    expect(restored).toEqual({
      code: 0,
      stdout: expect.stringMatching(summary(format, 3 + ownRows)),
      stderr: "",
    });
    expect(await contentOf(database.url)).toEqual(before);
  });

  test("on a terminal: shows and clears the progress, and asks for the name of the database", async () => {
    await using directory = await temporaryDirectory();
    await using database = await debianDatabase(60_000);
    const settings = env(database.url);
    const on = (...args: string[]) => svcOnTerminal(["database", ...args], settings, { cwd: directory.path });
    const dumping = on("dump", "--format", format);
    expect(await dumping.exitCode()).toBe(0);
    await dumping.shows(/\r\x1b\[K(Dumping|Checking)/);
    await dumping.shows(/\r\x1b\[KWrote svc-backup\.dump \(/);
    const wrong = on("restore");
    await wrong.shows(/To continue, type its name \(svc_test_\w+\): /);
    wrong.press("svc\n");
    expect(await wrong.exitCode()).toBe(1);
    await wrong.shows(/svc: The name does not match: nothing was changed/);
    await using(database.url, async (sql) => {
      await sql`select 1`;
      const right = on("restore");
      await right.shows(/, which 1 other session uses now\./);
      await right.shows(/type its name/);
      right.press(`${database.name}\n`);
      expect(await right.exitCode()).toBe(0);
      await right.shows(/\r\x1b\[KRestoring [\w.]+: [\d.]+ ([kM]?B|bytes)/);
      await right.shows(/\r\x1b\[KRestored svc-backup\.dump \(/);
    });
  });
});

test("a database without tables that holds anything else is replaced only with consent", async () => {
  await using directory = await temporaryDirectory();
  await using source = await debianDatabase();
  await svc(["database", "dump"], env(source.url), directory.path);
  const objects = [
    "create schema data; create table data.orders (id int); create materialized view totals as select from data.orders",
    "create function important() returns int language sql return 1",
    "create sequence invoice_no; select setval('invoice_no', 4711)",
  ];
  for (const statements of objects) {
    await using database = await createDatabaseOn(debian.url);
    await using(database.url, (sql) => sql.unsafe(statements));
    const before = await contentOf(database.url);
    const { port } = new URL(database.url);
    for (const more of [[], ["--example"]]) {
      const refused = await svc(["database", "restore", ...more], env(database.url), directory.path);
      expect(refused).toEqual(
        failed(
          `This replaces 1 object of the database ${database.name} on 127.0.0.1:${port}. There is no terminal for the confirmation: add --yes`,
        ),
      );
    }
    expect(await contentOf(database.url)).toEqual(before);
  }
});

describe("which format", () => {
  test("auto uses the portable format without pg_dump", async () => {
    await using directory = await temporaryDirectory();
    await using database = await createTestDatabase();
    const settings = env(database.url, directory.path);
    const { code, stdout } = await svc(["database", "dump"], settings, directory.path);
    expect([code, stdout]).toEqual([0, expect.stringMatching(summary("portable", ownRows))]);
    const custom = await svc(["database", "dump", "--format", "custom"], settings, directory.path);
    expect(custom).toEqual(
      failed(
        "The server is PostgreSQL 18 and there is no pg_dump here: install the tools of version 18 (apt-get install postgresql-client-18), or dump with --format portable, which needs none",
      ),
    );
  });

  test("for a server newer than the tools, it says what to install and keeps the old file", async () => {
    await using directory = await temporaryDirectory();
    await using database = await createTestDatabase();
    await Bun.write(join(directory.path, file), "old");
    const refused = await svc(["database", "dump"], env(database.url), directory.path);
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toMatch(
      /^svc: The server is PostgreSQL 18 and pg_dump here is 1\d\.\S+: install the tools of version 18 \(apt-get install postgresql-client-18\), or dump with --format portable, which needs none\n$/,
    );
    await using old = await debianDatabase();
    expect((await svc(["database", "dump"], env(old.url), directory.path)).code).toBe(0);
    const restored = await svc(["database", "restore", "--yes"], env(database.url), directory.path);
    expect(restored.stderr).toMatch(
      /^svc: The server is PostgreSQL 18 and pg_restore here is 1\d\.\S+: install [^\n]+\n$/,
    );
    expect(await using(database.url, (sql) => sql`select from revision`)).toHaveLength(revisions);
  });
});

describe("one clear line, exit 1", () => {
  test("wrong password, no server, no database", async () => {
    await using directory = await temporaryDirectory();
    await using database = await debianDatabase();
    for (const command of ["dump", "restore"]) {
      if (command === "restore") await svc(["database", "dump"], env(database.url), directory.path);
      const { port, pathname } = new URL(database.url);
      const at = (port: string) => `PostgreSQL at 127.0.0.1:${port}, database ${pathname.slice(1)},`;
      const run = (change: Partial<URL>) => {
        const url = Object.assign(new URL(database.url), change).href;
        return svc(["database", command], env(url), directory.path);
      };
      expect(await run({ password: "hunter2" })).toEqual(
        failed(`${at(port)} refuses this user or password: see SVC_DATABASE_URL`),
      );
      expect(await run({ port: "1" })).toEqual(
        failed(`${at("1")} does not answer: connection refused (see SVC_DATABASE_URL)`),
      );
      const lost = await run({ pathname: "/nowhere" });
      if (command === "dump")
        expect(lost.stderr).toMatch(/^svc: The database \S+ at \S+:\d+ does not exist: [^\n]*\n$/);
    }
    await using(debian.url, (sql) => sql`drop database if exists nowhere`);
  });

  test("a read-only database can be dumped, but not replaced", async () => {
    await using directory = await temporaryDirectory();
    await using database = await debianDatabase();
    await using(database.url, (sql) =>
      sql.unsafe(`alter database ${database.name} set default_transaction_read_only = on`),
    );
    expect((await svc(["database", "dump"], env(database.url), directory.path)).code).toBe(0);
    expect(await svc(["database", "restore", "--yes"], env(database.url), directory.path)).toEqual(
      failed("This database is read-only (a replica?): run this against the primary"),
    );
  });

  test("a working directory that was deleted", async () => {
    await using directory = await temporaryDirectory();
    await using database = await createTestDatabase();
    const script = 'mkdir gone && cd gone && rmdir ../gone && exec "$@"';
    for (const command of ["dump", "restore"]) {
      const { exitCode, stdout, stderr } = Bun.spawnSync(
        // Of a compiled program, Bun itself says so.
        ["/bin/sh", "-c", script, "sh", ...sourceProgram, "database", command],
        { cwd: directory.path, env: { ...env(database.url), PATH: "/usr/bin:/bin" } },
      );
      expect({ code: exitCode, stdout: `${stdout}`, stderr: `${stderr}` }).toEqual(
        failed("The working directory no longer exists: change to another one"),
      );
    }
  });

  test("a file that is missing, foreign or truncated", async () => {
    await using directory = await temporaryDirectory();
    await using database = await debianDatabase(20_000);
    const path = join(directory.path, file);
    const restore = () => svc(["database", "restore", "--yes"], env(database.url), directory.path);
    expect(await restore()).toEqual(failed(`There is no ${file} in ${directory.path}`));
    await Bun.write(path, "select 1;");
    expect(await restore()).toEqual(failed(`${path} is not a backup of svc: its format is unknown`));
    const before = await contentOf(database.url);
    for (const format of ["custom", "portable"]) {
      await svc(["database", "dump", "--format", format], env(database.url), directory.path);
      const bytes = await Bun.file(path).bytes();
      for (const length of [50, bytes.length / 2, bytes.length - 10]) {
        await Bun.write(path, bytes.subarray(0, length));
        const { code, stdout, stderr } = await restore();
        expect({ format, length, code, stdout }).toEqual({ format, length, code: 1, stdout: "" });
        expect(stderr).toMatch(
          format === "portable"
            ? /^svc: \S+ is truncated: [^\n]*\n$/
            : /^svc: \S+ does not end with the seal of svc database dump: it is truncated, [^\n]*\n$/,
        );
      }
    }
    expect(await contentOf(database.url)).toEqual(before);
  });
});

describe("a full disk", () => {
  test.each(["custom", "portable"] as const)(
    "%s: the old file is whole, and nothing else is there",
    async (format) => {
      await using database = await debianDatabase(60_000);
      await using disk = await smallDisk();
      const [bun, main] = [process.execPath, join(import.meta.dir, "../../main.ts")];
      const { stdout, stderr } = disk.run(
        `printf old > ${file}; "${bun}" "${main}" database dump --format ${format}; echo "exit $?"; cat ${file}; echo; ls -A`,
        { ...env(database.url), PATH: `${debian.tools}:/usr/bin:/bin` },
      );
      expect(stdout).toBe(`exit 1\nold\n${file}\n`);
      expect(stderr).toMatch(
        disk.kind === "disk"
          ? /^svc: The disk is full: \/\S+\/svc-backup\.dump could not be written completely\n$/
          : /^svc: \/\S+\/svc-backup\.dump would exceed the maximum file size [^\n]+\n$/,
      );
    },
  );
});

describe("the process of pg_dump", () => {
  /** Replaces pg_dump: records its input, then does as scripted. */
  async function fakeTool(directory: string, script: string): Promise<string> {
    const bin = join(directory, "bin");
    await Bun.write(
      join(bin, "pg_dump"),
      `#!/bin/sh
      case "$*" in *--version*) echo "pg_dump (PostgreSQL) ${debian.major}.1"; exit ;; esac
      { echo "args $*"; env; ls -l "$PGPASSFILE"; ls -ld "$(dirname "$PGPASSFILE")"; cat "$PGPASSFILE"; } > "${directory}/noted"
      ${script}`,
    );
    await chmod(join(bin, "pg_dump"), 0o755);
    return `${bin}:${debian.tools}:/usr/bin:/bin`;
  }

  test("gets the password only from a temporary file that only the user can read", async () => {
    await using directory = await temporaryDirectory();
    await using work = await temporaryDirectory();
    await using database = await debianDatabase();
    const path = await fakeTool(directory.path, 'echo "pg_dump: error: made up" >&2; exit 1');
    await Bun.write(join(work.path, file), "old");
    expect(await svc(["database", "dump"], env(database.url, path), work.path)).toEqual(
      failed("pg_dump: made up"),
    );
    expect([await readdir(work.path), await Bun.file(join(work.path, file)).text()]).toEqual([[file], "old"]);
    const noted = readFileSync(join(directory.path, "noted"), "utf8");
    const { password } = new URL(database.url);
    const lines = noted.split("\n").filter((line) => line.includes(password));
    expect(lines).toEqual([`*:*:*:*:${password}`]);
    expect(noted).toMatch(/^-rw-------/m);
    expect(noted).toMatch(/^drwx------/m);
    expect(noted).not.toContain("SVC_DATABASE_URL");
    expect(existsSync(/^PGPASSFILE=(.*)$/m.exec(noted)![1]!)).toBeFalse();
  });

  test.each([
    ["SIGINT", 130],
    ["SIGTERM", 130],
    ["SIGHUP", 130],
  ] as const)("%s ends it, and leaves nothing behind", async (signal, code) => {
    await using directory = await temporaryDirectory();
    await using work = await temporaryDirectory();
    await using database = await debianDatabase();
    // It is slow to exit, and svc waits for it before it removes its files.
    const slowly = "trap 'kill $!; sleep 0.5; exit 1' TERM; sleep 600 & wait";
    const path = await fakeTool(directory.path, `echo "pg_dump: working" >&2; ${slowly}`);
    await Bun.write(join(work.path, file), "old");
    const { child, finished } = spawnSvc(["database", "dump"], env(database.url, path), undefined, work.path);
    while (
      !existsSync(join(directory.path, "noted")) ||
      !descendants(child.pid).some((p) => p.command.includes("600"))
    )
      await Bun.sleep(20);
    const processes = descendants(child.pid);
    expect((await readdir(work.path)).length).toBe(2);
    child.kill(signal);
    expect(await finished).toEqual({ code, stdout: "", stderr: "" });
    await untilGone(processes);
    expect([await readdir(work.path), await Bun.file(join(work.path, file)).text()]).toEqual([[file], "old"]);
    const noted = readFileSync(join(directory.path, "noted"), "utf8");
    expect(existsSync(/^PGPASSFILE=(.*)$/m.exec(noted)![1]!)).toBeFalse();
  });
});

describe("an interrupted restore", () => {
  test.each(["SIGINT", "SIGKILL"] as const)("%s: the database is as it was", async (signal) => {
    await using directory = await temporaryDirectory();
    await using work = await temporaryDirectory();
    await using database = await debianDatabase(1000);
    await svc(["database", "dump"], env(database.url), work.path);
    await fill(database.url, 5);
    const before = await contentOf(database.url);
    const tool = join(directory.path, "pg_restore");
    const marker = join(directory.path, "reached");
    // Everything except the end.
    await Bun.write(
      tool,
      `#!/bin/sh
      case "$*" in *--section=data*) ${debian.tools}/pg_restore "$@" | head -c 20000; touch ${marker}; exec sleep 600 ;; esac
      exec ${debian.tools}/pg_restore "$@"`,
    );
    await chmod(tool, 0o755);
    const settings = env(database.url, `${directory.path}:/usr/bin:/bin`);
    const { child, finished } = spawnSvc(["database", "restore", "--yes"], settings, undefined, work.path);
    while (!existsSync(marker)) await Bun.sleep(20);
    const processes = descendants(child.pid);
    child.kill(signal);
    const { code } = await finished;
    expect(code).toBe(signal === "SIGINT" ? 130 : null);
    // The child of a killed process has no parent any more.
    for (const { pid } of signal === "SIGKILL" ? processes : []) process.kill(pid);
    await untilGone(processes);
    expect(await contentOf(database.url)).toEqual(before);
    const scratches = () =>
      using(
        debian.url,
        (sql) => sql`select datname, (select count(*)::int from pg_stat_activity a
            where a.datname = d.datname or a.pid::text = split_part(d.datname, '_', 3)) as sessions
          from pg_database d
          where shobj_description(oid, 'pg_database') = ${`Temporary: svc database restore of ${database.name}`}`,
      );
    expect(await scratches()).toHaveLength(signal === "SIGINT" ? 0 : 1);
    await until("the end of its sessions", async () =>
      (await scratches()).every(({ sessions }) => sessions === 0),
    );
    const again = await svc(["database", "restore", "--yes"], env(database.url), work.path);
    expect(again).toMatchObject({ code: 0, stderr: "" });
    expect(await scratches()).toHaveLength(0);
  });
});
