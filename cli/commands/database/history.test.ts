import { expect, test } from "bun:test";
import { openSql } from "../../../drizzle/client.ts";
import { failed, ok, runAsPsql } from "../../../tests/support/cli/database.ts";
import { head, ids, on, svc } from "../../../tests/support/cli/next_revision.ts";
import { createEmptyTestDatabase } from "../../../tests/support/database/database.ts";

// With a history of several revisions.

const before = ids.at(-2)!;

test("upgrades and downgrades a release step by step", async () => {
  await using database = await createEmptyTestDatabase();
  const run = on(database.url);
  const behind = (head: string) => `Behind this release, which has ${head}: run svc database upgrade\n`;
  expect(await run("current")).toEqual(ok("base\n", behind(head)));
  expect(await run("upgrade", "+1")).toEqual(ok(`Applied ${ids[0]}\n`));
  const between = ids.slice(1, -1).map((id) => `Applied ${id}\n`);
  expect(await run("upgrade", before)).toEqual(ok(between.join("")));
  expect(await run("current")).toEqual(ok(`${before}\n`, behind(head)));
  expect(await run("upgrade")).toEqual(ok(`Applied ${head}\n`));
  expect(await run("current")).toEqual(ok(`${head} (head)\n`));
  expect(await run("upgrade")).toEqual(ok(`Nothing to do: the schema is at ${head}\n`));
  expect(await run("downgrade")).toEqual(ok(`Reverted ${head}\n`));
  expect(await run("upgrade", "head")).toEqual(ok(`Applied ${head}\n`));
  expect(await run("downgrade", "-2")).toEqual(ok(`Reverted ${head}\nReverted ${before}\n`));
  expect((await run("upgrade")).stdout).toBe(
    ids
      .slice(-2)
      .map((id) => `Applied ${id}\n`)
      .join(""),
  );
  expect(await run("downgrade", "base")).toEqual(
    ok(
      ids
        .toReversed()
        .map((id) => `Reverted ${id}\n`)
        .join(""),
    ),
  );
  expect(await run("downgrade", "base")).toEqual(ok("Nothing to do: the schema is at base\n"));
  expect(await run("downgrade")).toEqual(failed("There is nothing to revert: no revision is applied"));
  expect(await run("upgrade", "nowhere")).toEqual(
    failed("There is no revision nowhere: svc database history lists them"),
  );
  expect(await run("upgrade", "-1")).toEqual(
    failed("An upgrade goes to head, +N or a revision: to go back, run svc database downgrade"),
  );
});

test("--sql between two revisions leaves a writable database with the right triggers", async () => {
  await using database = await createEmptyTestDatabase();
  const run = on(database.url);
  await run("upgrade");
  const sql = openSql(database.url, { max: 1 });
  await runAsPsql(sql, (await run("downgrade", "--sql")).stdout);
  expect((await run("current")).stdout).toBe(`${before}\n`);
  await sql`insert into team (name, created_at, updated_at) values ('quay', now(), now())`;
  await runAsPsql(sql, (await run("upgrade", "--sql")).stdout);
  expect(await sql`select search::text as words from team`).toMatchObject([{ words: "'quay':1A" }]);
  expect(await run("sync-triggers")).toEqual(ok("Nothing to do: all triggers are installed\n"));
  const guarded = await run("downgrade", "base", "--sql");
  await expect(runAsPsql(sql, guarded.stdout)).rejects.toThrow("This would lose the rows of team");
  await sql.unsafe("rollback; select pg_advisory_unlock_all()");
  const base = await run("downgrade", "base", "--sql", "--allow-data-loss");
  await runAsPsql(sql, base.stdout);
  expect((await run("current")).stdout).toBe("base\n");
  await sql.end();
});

test("heads and history list the revisions of the release and of the database", async () => {
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
