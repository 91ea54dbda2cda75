import { beforeAll, describe, expect, test } from "bun:test";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { headsOf, readRevisions } from "../../../drizzle/revision/history.ts";
import { upgrade } from "../../../drizzle/revision/upgrade.ts";
import { sourceProgram, spawnSvc, svc, svcOnTerminal } from "../../../tests/support/cli/process.ts";
import {
  contentOf,
  createPrepared,
  temporaryDirectory,
  using,
} from "../../../tests/support/database/backup.ts";
import { createTestDatabase } from "../../../tests/support/database/database.ts";
import { type DebianServer, debianServer } from "../../../tests/support/database/debian_postgres.ts";
import { smallDisk } from "../../../tests/support/database/small_disk.ts";
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

/** The environment of `svc`, without any other program. */
const env = (url: string) => ({ SVC_DATABASE_URL: url, PATH: "" });
const failed = (line: string) => ({ code: 1, stdout: "", stderr: `svc: ${line}\n` });
const summary = (rows: number) =>
  new RegExp(
    `^(Wrote|Restored) ${file} \\([\\d.]+ kB, \\d+ tables, ${rows} row${rows === 1 ? "" : "s"}, revision ${head}\\)\\n$`,
  );
const revisions = (await readRevisions()).length;
/** Inserts a row into each table. */
const ownRows = revisions;

test("dumps and restores a file; without a terminal, replacing data needs --yes", async () => {
  await using directory = await temporaryDirectory();
  await using database = await debianDatabase();
  const run = (...args: string[]) => svc(["database", ...args], env(database.url), directory.path);
  const before = await contentOf(database.url);
  const dumped = await run("dump");
  expect(dumped).toEqual({
    code: 0,
    stdout: expect.stringMatching(summary(3 + ownRows)),
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
    stdout: expect.stringMatching(summary(3 + ownRows)),
    stderr: "",
  });
  expect(await contentOf(database.url)).toEqual(before);
});

test("on a terminal: shows and clears the progress, and asks for the name of the database", async () => {
  await using directory = await temporaryDirectory();
  await using database = await debianDatabase(60_000);
  const settings = env(database.url);
  const on = (...args: string[]) => svcOnTerminal(["database", ...args], settings, { cwd: directory.path });
  const dumping = on("dump");
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

describe("one clear line, exit 1", () => {
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
    await svc(["database", "dump"], env(database.url), directory.path);
    const bytes = await Bun.file(path).bytes();
    for (const length of [50, bytes.length / 2, bytes.length - 10]) {
      await Bun.write(path, bytes.subarray(0, length));
      const { code, stdout, stderr } = await restore();
      expect({ length, code, stdout }).toEqual({ length, code: 1, stdout: "" });
      expect(stderr).toMatch(/^svc: \S+ is truncated: [^\n]*\n$/);
    }
    expect(await contentOf(database.url)).toEqual(before);
  });
});

test("on a full disk, the old file is whole, and nothing else is there", async () => {
  await using database = await debianDatabase(60_000);
  await using disk = await smallDisk();
  const [bun, main] = [process.execPath, join(import.meta.dir, "../../main.ts")];
  const { stdout, stderr } = disk.run(
    `printf old > ${file}; "${bun}" "${main}" database dump; echo "exit $?"; cat ${file}; echo; ls -A`,
    { ...env(database.url), PATH: "/usr/bin:/bin" },
  );
  expect(stdout).toBe(`exit 1\nold\n${file}\n`);
  expect(stderr).toMatch(
    disk.kind === "disk"
      ? /^svc: The disk is full: \/\S+\/svc-backup\.dump could not be written completely\n$/
      : /^svc: \/\S+\/svc-backup\.dump would exceed the maximum file size [^\n]+\n$/,
  );
});

test.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)(
  "%s ends a dump, and leaves only the old file",
  async (signal) => {
    await using work = await temporaryDirectory();
    await using database = await debianDatabase();
    await Bun.write(join(work.path, file), "old");
    await using(database.url, (sql) =>
      sql.begin(async (holder) => {
        await holder`lock table audit_log`;
        const { child, finished } = spawnSvc(["database", "dump"], env(database.url), undefined, work.path);
        await waitsForLock(database.name);
        child.kill(signal);
        expect(await finished).toEqual({ code: 130, stdout: "", stderr: "" });
      }),
    );
    expect([await readdir(work.path), await Bun.file(join(work.path, file)).text()]).toEqual([[file], "old"]);
  },
);

/** Settles when a session of this database waits for a lock. */
async function waitsForLock(name: string): Promise<void> {
  await using(debian.url, (sql) =>
    until("a session to wait for a lock", async () => {
      const waiting =
        await sql`select from pg_stat_activity where datname = ${name} and wait_event_type = 'Lock'`;
      return waiting.length > 0;
    }),
  );
}

describe("an interrupted restore", () => {
  test.each(["SIGINT", "SIGKILL"] as const)("%s: the database is as it was", async (signal) => {
    await using work = await temporaryDirectory();
    await using database = await debianDatabase(1000);
    await svc(["database", "dump"], env(database.url), work.path);
    await fill(database.url, 5);
    const before = await contentOf(database.url);
    const { child, finished } = spawnSvc(
      ["database", "restore", "--yes"],
      env(database.url),
      undefined,
      work.path,
    );
    const scratches = () =>
      using(
        debian.url,
        (sql) => sql`select datname, (select count(*)::int from pg_stat_activity a
            where a.datname = d.datname or a.pid::text = split_part(d.datname, '_', 3)) as sessions
          from pg_database d
          where shobj_description(oid, 'pg_database') = ${`Temporary: svc database restore of ${database.name}`}`,
      );
    await until("the trial of the backup", async () => (await scratches()).length > 0);
    child.kill(signal);
    const { code } = await finished;
    expect(code).toBe(signal === "SIGINT" ? 130 : null);
    expect(await contentOf(database.url)).toEqual(before);
    // What a killed one leaves behind, the next restore on this server drops: perhaps that of another test.
    if (signal === "SIGINT") expect(await scratches()).toHaveLength(0);
    await until("the end of its sessions", async () =>
      (await scratches()).every(({ sessions }) => sessions === 0),
    );
    const again = await svc(["database", "restore", "--yes"], env(database.url), work.path);
    expect(again).toMatchObject({ code: 0, stderr: "" });
    expect(await scratches()).toHaveLength(0);
  });
});
