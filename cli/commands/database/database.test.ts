import { expect, test } from "bun:test";
import { openSql } from "../../../drizzle/client.ts";
import { failed, head, ok, on, runAsPsql } from "../../../tests/support/cli/database.ts";
import { createEmptyTestDatabase, createTestDatabase } from "../../../tests/support/database/database.ts";

test("a downgrade lists the data that it would drop, and drops it only if allowed", async () => {
  await using database = await createTestDatabase();
  const run = on(database.url);
  expect((await run("populate")).code).toBe(0);
  const refused = await run("downgrade", "base");
  expect(refused).toMatchObject({ code: 1, stdout: "" });
  expect(refused.stderr).toMatch(
    /^svc: This would lose the rows of .*incident_type.* then: svc database downgrade base --allow-data-loss\n$/,
  );
  expect((await run("current")).stdout).toBe(`${head} (head)\n`);
  expect((await run("downgrade", "base", "--allow-data-loss")).code).toBe(0);
  expect((await run("current")).stdout).toBe("base\n");
});

test("--sql prints SQL that psql can run", async () => {
  await using database = await createEmptyTestDatabase();
  const run = on(database.url);
  const { stdout: script, code } = await run("upgrade", "--sql");
  expect(code).toBe(0);
  expect((await run("current")).stdout).toBe("base\n");
  const sql = openSql(database.url, { max: 1 });
  await runAsPsql(sql, script);
  expect(await run("current")).toEqual(ok(`${head} (head)\n`));
  expect(await run("upgrade", "--sql")).toEqual(ok("-- Nothing to do\n"));
  expect(await run("sync-triggers")).toEqual(ok("Nothing to do: all triggers are installed\n"));
  const back = await run("downgrade", "base", "--sql");
  await runAsPsql(sql, back.stdout);
  expect((await run("current")).stdout).toBe("base\n");
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
    "postgres://h1:1,,h2:2/x",
    "postgres://h1:1,h2:2/x?target_session_attrs=standby",
    "postgres://h/x?options=-csearch_path%3Da",
    "postgres://h/x?search_path=a",
  ]) {
    const { code, stderr } = await on(bad)("current");
    expect({ bad, code, lines: stderr.split("\n").length }).toEqual({ bad, code: 1, lines: 2 });
    expect(stderr).toMatch(/^svc: SVC_DATABASE_URL: /);
  }
});

test("keeps the triggers of a newer release", async () => {
  await using database = await createTestDatabase();
  const sql = openSql(database.url, { max: 1 });
  const manifest = JSON.stringify({ parents: [head], compatible: true });
  await sql`insert into revision (id, checksum, down_sql, manifest) values ('9999_next', '', '', ${manifest}::text::jsonb)`;
  await sql`create function svc_next() returns trigger language plpgsql as 'begin return new; end'`;
  const run = on(database.url);
  expect((await run("sync-triggers")).stderr).toMatch(/^svc: The schema belongs to a newer release: .*\n$/);
  expect((await run("upgrade")).code).toBe(0);
  expect(await sql`select proname from pg_proc where proname = 'svc_next'`).toHaveLength(1);
  await sql.end();
});

test("stamp records a revision without running it, which check --drift detects; repair accepts edited files", async () => {
  await using database = await createEmptyTestDatabase();
  const run = on(database.url);
  expect(await run("stamp", "head")).toEqual(ok(`Stamped: the schema is at ${head}\n`));
  expect((await run("current")).stdout).toBe(`${head} (head)\n`);
  const drift = await run("check", "--drift");
  expect(drift).toMatchObject({ code: 1, stderr: "svc: 1 thing needs attention\n" });
  expect(drift.stdout).toMatch(/^The database differs from its revisions:\n {2}- /);
  expect(await run("stamp", "base")).toEqual(ok("Stamped: the schema is at base\n"));
  await run("upgrade");
  expect(await run("check", "--drift")).toEqual(ok("No changes without a revision, and no drift\n"));
  const sql = openSql(database.url, { max: 1 });
  await sql`create index by_hand on team (email)`;
  const { stdout } = await run("check", "--drift");
  expect(stdout).toMatch(/\n {2}\+ .*by_hand.*\n$/);
  const json = await run("check", "--drift", "--json");
  expect(json).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('"message":"1 thing needs attention"'),
  });
  expect(JSON.parse(json.stdout)).toEqual([
    {
      text: "The database differs from its revisions:",
      details: [expect.stringMatching(/^\+ .*by_hand/)],
    },
  ]);
  await sql`update revision set checksum = 'other' where id = ${head}`;
  await sql.end();
  expect((await run("upgrade")).stderr).toContain(`svc database repair ${head} --accept`);
  expect(await run("repair", head, "--accept")).toEqual(ok(`Repaired ${head}\n`));
  expect((await run("upgrade")).code).toBe(0);
  expect(await run("repair", head, "--accept")).toEqual(
    failed(`Revision ${head} is not edited: there is nothing to repair`),
  );
  expect(await run("check", "--json")).toEqual(ok("[]\n"));
  expect((await run("repair", head)).code).toBe(2);
  expect((await run("repair", head, "--accept", "--applied")).code).toBe(2);
});

test("sync-triggers prints its changes", async () => {
  await using database = await createTestDatabase();
  const sql = openSql(database.url, { max: 1 });
  await sql`drop trigger svc_team_search on team`;
  await sql`insert into team (name, created_at, updated_at) values ('quay', now(), now())`;
  await sql.end();
  const run = on(database.url);
  expect(await run("sync-triggers")).toEqual(ok("Created trigger svc_team_search\nFilled 1 row of team\n"));
});
