import { expect, test } from "bun:test";
import { openSql } from "../../../drizzle/client.ts";
import { ok } from "../../../tests/support/cli/database.ts";
import { head, ids, on, svc } from "../../../tests/support/cli/next_revision.ts";
import { svc as svcOfSource } from "../../../tests/support/cli/process.ts";
import { createEmptyTestDatabase } from "../../../tests/support/database/database.ts";

// Alembic's command lines: they work, or the error says what to use instead.

const before = ids.at(-2)!;

test("heads --verbose, current --verbose, current --check-heads", async () => {
  await using database = await createEmptyTestDatabase();
  const run = on(database.url);
  expect((await run("upgrade")).code).toBe(0);
  const heads = await svc(["database", "heads", "-v"], {});
  expect(heads).toMatchObject({ code: 0, stderr: "" });
  expect(heads.stdout).toStartWith(`Revision     ${head}\nMessage      `);
  expect((await run("current", "--check-heads")).code).toBe(0);
  expect((await run("current", "-v")).stdout.replace(/^Applied.*\n/m, "")).toBe(heads.stdout);
  expect((await run("downgrade", "--allow-data-loss")).code).toBe(0);
  const behind = `Behind this release, which has ${head}: run svc database upgrade\n`;
  const check = await run("current", "--check-heads");
  expect(check).toMatchObject({ code: 1, stdout: `${before}\n` });
  expect(check.stderr).toBe(`${behind}svc: The database is not at the head of this release\n`);
  expect((await run("current", "--check-heads", "--json")).code).toBe(1);
}, 60_000);

test("options with a different name in svc", async () => {
  for (const [command, option, instead] of [
    ["stamp", "--sql", "svc database stamp REV"],
    ["revision", "--splice", "svc database revision -m TEXT"],
  ]) {
    const { code, stderr } = await svc(["database", command!, option!], {});
    expect(code).toBe(2);
    expect(stderr).toStartWith(`svc: unknown option: ${option}. Use instead: ${instead}`);
  }
}, 60_000);

test("shows an interrupted revision, and how to continue", async () => {
  await using database = await createEmptyTestDatabase();
  const run = on(database.url);
  await run("upgrade");
  const sql = openSql(database.url, { max: 1 });
  await sql`update revision set state = 'reverting' where id = ${head}`;
  await sql.end();
  expect(await run("current")).toEqual(
    ok(
      `${before}\n${head} (reverting)\n`,
      `Revision ${head} is reverting, or was interrupted: if no other command is running, continue with svc database downgrade\nBehind this release, which has ${head}: run svc database upgrade\n`,
    ),
  );
  expect(JSON.parse((await run("current", "--json")).stdout)).toMatchObject({
    interrupted: [{ id: head, state: "reverting" }],
  });
}, 60_000);

test("revision --autogenerate without a message", async () => {
  expect(await svcOfSource(["database", "revision", "--autogenerate"], {})).toEqual(
    ok("Nothing to do: drizzle/schema matches the newest revision\n"),
  );
}, 60_000);

test("merge, and commands with a different name in svc", async () => {
  const nowhere = {};
  expect(await svcOfSource(["database", "merge"], nowhere)).toEqual(ok("Nothing to do: there is one head\n"));
  for (const [name, instead] of [
    ["show", "svc database history --verbose"],
    ["branches", "svc database heads, or svc database history"],
  ]) {
    const { code, stderr } = await svc(["database", name!, "x"], nowhere);
    expect(code).toBe(2);
    expect(stderr).toStartWith(`svc: unknown command: ${name}. Use instead: ${instead}\n`);
  }
}, 60_000);
