import { describe, expect, test } from "bun:test";
import { inOrder } from "../../../core/revision/graph.ts";
import { readRevisions } from "../../../core/revision/read.ts";
import { openSql } from "../../../drizzle/client.ts";
import { createEmptyTestDatabase, createTestDatabase } from "../../../tests/support/database.ts";
import { svc, svcOnTerminal } from "../../testing/process.ts";

const ids = inOrder(await readRevisions()).map(({ id }) => id);
const head = ids.at(-1)!;
const before = ids.at(-2)!;

/** `svc database ...` against one database; a failure shows what was said. */
function on(url: string) {
  return async (...args: string[]) => {
    const { code, stdout, stderr } = await svc(["database", ...args], { SVC_DATABASE_URL: url });
    return { code, stdout, stderr };
  };
}
const ok = (stdout: string, stderr = "") => ({ code: 0, stdout, stderr });
const failed = (stderr: string, stdout = "") => ({ code: 1, stdout, stderr: `svc: ${stderr}\n` });

test("a release forward and back, step by step", async () => {
  await using database = await createEmptyTestDatabase();
  const run = on(database.url);
  const behind = (head: string) => `Behind this release, which has ${head}: svc database upgrade\n`;
  expect(await run("current")).toEqual(ok("base\n", behind(head)));
  expect(await run("upgrade", "+1")).toEqual(ok(`Applied ${ids[0]}\n`));
  expect(await run("upgrade", before)).toEqual(
    ok(
      ids
        .slice(1, -1)
        .map((id) => `Applied ${id}\n`)
        .join(""),
    ),
  );
  expect(await run("current")).toEqual(ok(`${before}\n`, behind(head)));
  expect(await run("upgrade")).toEqual(ok(`Applied ${head}\n`));
  expect(await run("current")).toEqual(ok(`${head} (head)\n`));
  expect(await run("upgrade")).toEqual(ok(`Nothing to do: the schema is at ${head}\n`));
  expect(await run("downgrade")).toEqual(ok(`Took back ${head}\n`));
  expect(await run("upgrade", "head")).toEqual(ok(`Applied ${head}\n`));
  expect(await run("downgrade", "-2")).toEqual(ok(`Took back ${head}\nTook back ${before}\n`));
  expect(await run("downgrade", "base")).toEqual(
    ok(
      ids
        .slice(0, -2)
        .toReversed()
        .map((id) => `Took back ${id}\n`)
        .join(""),
    ),
  );
  expect(await run("downgrade", "base")).toEqual(ok("Nothing to do: the schema is at base\n"));
  expect(await run("downgrade")).toEqual(failed("There is nothing to take back: no revision is applied"));
  expect(await run("upgrade", "nowhere")).toEqual(
    failed("There is no revision nowhere: svc database history lists them"),
  );
});

test("what a downgrade would lose is named, and lost only when that is allowed", async () => {
  await using database = await createTestDatabase();
  const run = on(database.url);
  expect((await run("populate")).code).toBe(0);
  const refused = await run("downgrade", "base");
  expect(refused).toMatchObject({ code: 1, stdout: "" });
  expect(refused.stderr).toMatch(
    /^svc: This would lose the rows of .*incident_type.*add --allow-data-loss\n$/,
  );
  expect((await run("current")).stdout).toBe(`${head} (head)\n`);
  expect((await run("downgrade", "base", "--allow-data-loss")).code).toBe(0);
  expect((await run("current")).stdout).toBe("base\n");
});

test("--sql prints what would be run, and psql's protocol can run it", async () => {
  await using database = await createEmptyTestDatabase();
  const run = on(database.url);
  const { stdout: script, code } = await run("upgrade", "--sql");
  expect(code).toBe(0);
  expect((await run("current")).stdout).toBe("base\n");
  const sql = openSql(database.url, { max: 1 });
  await sql.unsafe(script);
  expect(await run("current")).toEqual(ok(`${head} (head)\n`));
  expect(await run("upgrade", "--sql")).toEqual(ok("-- Nothing to do\n"));
  expect(await run("sync-triggers")).toEqual(ok("Nothing to do: all triggers are as they should be\n"));
  expect(await run("repair")).toEqual(ok("Nothing to do: files and database agree\n"));
  const back = await run("downgrade", "base", "--sql");
  await sql.unsafe(back.stdout);
  expect((await run("current")).stdout).toBe("base\n");
  await sql.end();
});

test("--sql between two revisions leaves a database that can be written, with the triggers that belong there", async () => {
  await using database = await createTestDatabase();
  const run = on(database.url);
  const sql = openSql(database.url, { max: 1 });
  await sql.unsafe((await run("downgrade", "--sql")).stdout);
  expect((await run("current")).stdout).toBe(`${before}\n`);
  await sql`insert into team (name, created_at, updated_at) values ('quay', now(), now())`;
  await sql.unsafe((await run("upgrade", "--sql")).stdout);
  expect(await sql`select search::text as words from team`).toMatchObject([{ words: "'quay':1A" }]);
  expect(await run("sync-triggers")).toEqual(ok("Nothing to do: all triggers are as they should be\n"));
  const first = await run("downgrade", ids[0]!, "--sql");
  await sql.unsafe(first.stdout);
  expect((await run("current")).stdout).toBe(`${ids[0]}\n`);
  await sql.end();
});

test("a database's name, user and password may hold any character", async () => {
  await using database = await createEmptyTestDatabase();
  const admin = openSql(database.url, { max: 1 });
  const name = `${new URL(database.url).pathname.slice(1)} ö.%`;
  const url = new URL(database.url);
  url.pathname = `/${encodeURIComponent(name)}`;
  try {
    expect((await on(url.href)("init")).stdout).toContain(`Created database ${name}\n`);
    expect((await on(url.href)("current")).stdout).toBe(`${head} (head)\n`);
  } finally {
    await admin.unsafe(`drop database if exists "${name}" with (force)`);
    await admin.end();
  }
  for (const bad of [
    "postgres://u:100%@h/x",
    "postgres://h1:1,h2:2/x",
    "postgres://h/x?options=-csearch_path%3Da",
  ]) {
    const { code, stderr } = await on(bad)("current");
    expect({ bad, code, lines: stderr.split("\n").length }).toEqual({ bad, code: 1, lines: 2 });
    expect(stderr).toMatch(/^svc: SVC_DATABASE_URL: /);
  }
});

test("heads and history tell what the release has, and what the database knows", async () => {
  await using database = await createEmptyTestDatabase();
  const run = on(database.url);
  expect(await run("heads")).toEqual(ok(`${head} (head)\n`));
  await run("upgrade", "+1");
  const rows = (await run("history")).stdout.trimEnd().split("\n");
  expect(rows[0]).toMatch(/^Revision +Parents +Applied +Message$/);
  expect(rows.slice(1).map((row) => row.split(/ {2,}/)[0])).toEqual(ids.toReversed());
  expect(rows[1]!.split(/ {2,}/)[2]).toBe("-");
  expect(rows.at(-1)!.split(/ {2,}/)[2]).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  const offline = await svc(["database", "history"]);
  expect(offline.stdout.split("\n")[0]).toMatch(/^Revision +Parents +Message$/);
  const list = JSON.parse((await run("history", "--json")).stdout);
  expect(list).toHaveLength(ids.length);
  expect(list[0]).toMatchObject({ id: head, appliedAt: null, unknown: false });
  expect((await run("history", "--verbose")).stdout).toContain(`Revision     ${head}\n`);
});

test("stamp notes and runs nothing; repair and check --drift find it out", async () => {
  await using database = await createEmptyTestDatabase();
  const run = on(database.url);
  expect(await run("stamp", "head")).toEqual(ok(`Stamped: the schema is at ${head}\n`));
  expect((await run("current")).stdout).toBe(`${head} (head)\n`);
  const drift = await run("check", "--drift");
  expect(drift).toMatchObject({ code: 1, stderr: "svc: 1 thing needs attention\n" });
  expect(drift.stdout).toMatch(/^The database is not what its revisions make:\n {2}- /);
  expect(await run("stamp", "base")).toEqual(ok("Stamped: the schema is at base\n"));
  await run("upgrade");
  expect(await run("check", "--drift")).toEqual(ok("No changes without a revision, and no drift\n"));
  const sql = openSql(database.url, { max: 1 });
  await sql`create index by_hand on team (email)`;
  const { stdout } = await run("check", "--drift");
  expect(stdout).toMatch(/\n {2}\+ .*by_hand.*\n$/);
  await sql`update revision set checksum = 'other' where id = ${head}`;
  await sql.end();
  expect(await run("repair")).toEqual(
    failed(
      "1 revision needs a decision",
      `${head} was edited after it had been applied: restore its files, or svc database repair ${head} --accept\n`,
    ),
  );
  expect((await run("upgrade")).stderr).toContain(`svc database repair --accept ${head}`);
  expect(await run("repair", "--accept", head)).toEqual(ok(`Repaired ${head}\n`));
  expect((await run("upgrade")).code).toBe(0);
  expect((await run("repair", "--accept", "--applied", head)).code).toBe(2);
});

test("sync-triggers tells what it did", async () => {
  await using database = await createTestDatabase();
  const sql = openSql(database.url, { max: 1 });
  await sql`drop trigger svc_team_search on team`;
  await sql`insert into team (name, created_at, updated_at) values ('quay', now(), now())`;
  await sql.end();
  const run = on(database.url);
  expect(await run("sync-triggers")).toEqual(ok("Created trigger svc_team_search\nFilled 1 row of team\n"));
});

describe("init", () => {
  test("creates the database, its schema and the defaults; again there is nothing to do", async () => {
    await using database = await createEmptyTestDatabase();
    const url = new URL(database.url);
    const name = `${url.pathname.slice(1)}_new`;
    url.pathname = `/${name}`;
    const admin = openSql(database.url, { max: 1 });
    try {
      const run = on(url.href);
      const { code, stdout } = await run("init");
      expect(code).toBe(0);
      expect(stdout).toContain(`Applied ${head}\nCreated database ${name}\nCreated incident type `);
      expect(await run("init")).toEqual(
        ok(`Nothing to do: the schema is at ${head}, and every default is there\n`),
      );
    } finally {
      await admin.unsafe(`drop database if exists ${name} with (force)`);
      await admin.end();
    }
  });

  test("three at once: each ends well", async () => {
    await using database = await createEmptyTestDatabase();
    const url = new URL(database.url);
    const name = `${url.pathname.slice(1)}_three`;
    url.pathname = `/${name}`;
    const admin = openSql(database.url, { max: 1 });
    try {
      for (const command of ["init", "upgrade", "populate", "sync-triggers"]) {
        const runs = await Promise.all([1, 2, 3].map(() => on(url.href)(command)));
        expect(runs.map(({ code, stderr }) => ({ code, stderr }))).toEqual(
          Array(3).fill({ code: 0, stderr: expect.any(String) }),
        );
      }
      expect((await on(url.href)("init")).stdout).toStartWith("Nothing to do");
    } finally {
      await admin.unsafe(`drop database if exists ${name} with (force)`);
      await admin.end();
    }
  });
});

describe("drop", () => {
  test("refuses without a terminal, and does it with --yes", async () => {
    await using database = await createTestDatabase();
    const run = on(database.url);
    const refused = await run("drop");
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toMatch(
      /^svc: This drops all \d+ tables of the database svc_test_\w+ on 127\.0\.0\.1:\d+\. There is no terminal to ask on: add --yes\n$/,
    );
    expect((await run("current")).stdout).toBe(`${head} (head)\n`);
    expect((await run("drop", "--yes")).stdout).toMatch(/^Dropped \d+ tables of svc_test_\w+\n$/);
    expect((await run("drop", "--yes")).stdout).toMatch(/^Nothing to do: svc_test_\w+ is empty\n$/);
    const sql = openSql(database.url, { max: 1 });
    const left = await sql`select relname from pg_class where relnamespace = 'public'::regnamespace
      union all select proname from pg_proc where pronamespace = 'public'::regnamespace`;
    expect(left).toHaveLength(0);
    await sql.end();
  });

  test("asks for views and types too, and takes nothing of another schema along", async () => {
    await using database = await createEmptyTestDatabase();
    const sql = openSql(database.url, { max: 1 });
    await sql.unsafe(`create type mood as enum ('a'); create materialized view m as select 1 as one; create view v as select * from m;
      create type pair as (a int, b int); create schema other; create table other.t (m mood)`);
    const run = on(database.url);
    expect((await run("drop")).code).toBe(1);
    const refused = await run("drop", "--yes");
    expect(refused.stderr).toBe("svc: Nothing was dropped: column m of table other.t depends on type mood\n");
    expect(await sql`select to_regclass('v') is not null as v`).toMatchObject([{ v: true }]);
    await sql`drop schema other cascade`;
    expect((await run("drop", "--yes")).code).toBe(0);
    expect(await sql`select typname from pg_type where typnamespace = 'public'::regnamespace`).toHaveLength(
      0,
    );
    await sql.end();
  });

  test("leaves what belongs to an extension", async () => {
    await using database = await createTestDatabase();
    const sql = openSql(database.url, { max: 1 });
    await sql`create extension if not exists pg_trgm`;
    expect((await on(database.url)("drop", "--yes")).code).toBe(0);
    expect(await sql`select extname from pg_extension where extname = 'pg_trgm'`).toHaveLength(1);
    await sql.end();
  });

  test("asks for the database's name on a terminal; another answer changes nothing", async () => {
    await using database = await createTestDatabase();
    const name = new URL(database.url).pathname.slice(1);
    const env = { SVC_DATABASE_URL: database.url };
    const wrong = svcOnTerminal(["database", "drop"], env);
    await wrong.shows(/Type its name to go on/);
    wrong.press("svc\r");
    expect(await wrong.exitCode()).toBe(1);
    expect(wrong.output()).toContain("That is not its name: nothing was changed");
    const stopped = svcOnTerminal(["database", "drop"], env);
    await stopped.shows(/Type its name to go on/);
    stopped.press("\x03");
    expect(await stopped.exitCode()).toBe(130);
    expect((await on(database.url)("current")).stdout).toBe(`${head} (head)\n`);
    const right = svcOnTerminal(["database", "drop"], env);
    await right.shows(/Type its name to go on/);
    right.press(`${name}\r`);
    expect(await right.exitCode()).toBe(0);
    expect(right.output()).toContain(`tables of ${name}`);
  });
});

describe("what an operator can cause is one line, without the password", () => {
  const commands = [
    ["upgrade"],
    ["downgrade"],
    ["current"],
    ["history"],
    ["sync-triggers"],
    ["populate"],
    ["init"],
  ];
  const faults: [string, (url: URL) => void, RegExp][] = [
    [
      "a wrong password",
      (url) => Object.assign(url, { password: "hunter2" }),
      /refuses this user or password/,
    ],
    ["no server", (url) => Object.assign(url, { port: "9" }), /does not answer/],
    ["no such host", (url) => Object.assign(url, { hostname: "nowhere.invalid" }), /does not answer/],
  ];
  test.each(faults)("%s", async (_, harm, expected) => {
    await using database = await createEmptyTestDatabase();
    const url = new URL(database.url);
    harm(url);
    for (const command of commands) {
      const { code, stdout, stderr } = await on(url.href)(...command);
      expect({ command, code, stdout, lines: stderr.split("\n").length }).toEqual({
        command,
        code: 1,
        stdout: "",
        lines: 2,
      });
      expect(stderr).toMatch(expected);
      expect(stderr).not.toContain(url.password);
    }
  });

  test("no rights, and a database that may only be read", async () => {
    await using database = await createTestDatabase();
    const url = new URL(database.url);
    const sql = openSql(database.url, { max: 1 });
    const name = url.pathname.slice(1);
    await sql.unsafe(
      `create role "${name}" login password 'guest'; grant connect on database "${name}" to "${name}"`,
    );
    Object.assign(url, { username: name, password: "guest" });
    for (const command of [["upgrade"], ["populate"], ["drop", "--yes"], ["downgrade"]]) {
      const { code, stderr } = await on(url.href)(...command);
      expect({ command, code }).toEqual({ command, code: 1 });
      expect(stderr).toMatch(/^svc: PostgreSQL does not let this user do that.*\n$/);
    }
    await sql.unsafe(
      `drop owned by "${name}"; drop role "${name}"; alter database "${name}" set default_transaction_read_only = on`,
    );
    await sql.end();
    for (const command of [["populate"], ["downgrade"], ["stamp", "base"], ["drop", "--yes"]]) {
      const { code, stderr } = await on(database.url)(...command);
      expect({ command, code, stderr }).toEqual({
        ...{ command, code: 1 },
        stderr: "svc: This database is read-only (a replica?): run this against the primary\n",
      });
    }
  });
});
