import { expect, test } from "bun:test";
import { openSql } from "../../../drizzle/client.ts";
import { failed, ok } from "../../../tests/support/cli/database.ts";
import { head, ids, on, svc } from "../../../tests/support/cli/next_revision.ts";
import { svc as svcOfSource } from "../../../tests/support/cli/process.ts";
import { createEmptyTestDatabase } from "../../../tests/support/database/database.ts";

// Alembic's command lines: they work, or the error says what to use instead.

const [first, second] = ids as [string, string];
const before = ids.at(-2)!;

test("targets: heads, REV+N, head-N", async () => {
  await using database = await createEmptyTestDatabase();
  const run = on(database.url);
  expect((await run("upgrade", `${first}+1`)).stdout).toBe(`Applied ${first}\nApplied ${second}\n`);
  expect((await run("downgrade", `${second}-1`)).stdout).toBe(`Reverted ${second}\n`);
  expect((await run("upgrade", "base+2")).stdout).toBe(`Applied ${second}\n`);
  const later = ids.slice(2).map((id) => `Applied ${id}\n`);
  expect((await run("upgrade", "heads")).stdout).toBe(later.join(""));
  expect((await run("downgrade", "head-1")).stdout).toBe(`Reverted ${head}\n`);
  expect((await run("upgrade", "heads")).stdout).toBe(`Applied ${head}\n`);
  expect((await run("stamp", "heads")).stdout).toBe(`Stamped: the schema is at ${head}\n`);
  expect(await run("upgrade", `${first}+99`)).toEqual(
    failed(`There is no revision ${first}+99: svc database history lists them`),
  );
}, 60_000);

test("ranges: SQL without a database, and a part of the history", async () => {
  for (const [range, revisions] of [
    [`base:${second}`, [first, second]],
    [`${first}:${second}`, [second]],
  ] as const) {
    const alone = await svc(["database", "upgrade", range, "--sql"], {});
    expect(alone).toMatchObject({ code: 0, stderr: "" });
    expect(alone.stdout.match(/^-- Revision .*$/gm)?.filter((line) => !line.includes(","))).toEqual(
      revisions.map((id) => `-- Revision ${id}`),
    );
  }
  const back = await svc(["database", "downgrade", `${second}:${first}`, "--sql"], {});
  expect(back.stdout).toContain(`delete from public.revision where id = '${second}'`);
  expect(back.stdout).not.toContain(`delete from public.revision where id = '${first}'`);
  const history = await svc(["database", "history", "-r", `${first}:${second}`, "--json"], {});
  expect(JSON.parse(history.stdout).map(({ id }: { id: string }) => id)).toEqual([second, first]);
  expect(await svc(["database", "history", "--range", "current:"], {})).toEqual(
    failed("Only a database knows what is current: set SVC_DATABASE_URL"),
  );
  expect((await svc(["database", "upgrade", "base:head"], {})).stderr).toStartWith(
    "svc: the range base:head requires --sql\n",
  );
}, 60_000);

test("current --verbose, and stamp --purge", async () => {
  await using database = await createEmptyTestDatabase();
  const run = on(database.url);
  await run("upgrade");
  const { stdout } = await run("current", "-v");
  expect(stdout).toStartWith(`Revision     ${head}\nMessage      `);
  for (const range of ["-r-1:current", "-r-1:", "-r=current-1:head", `-r${before}:`, "--range=-1:head"]) {
    const history = await run("history", range, "--json");
    expect(JSON.parse(history.stdout).map(({ id }: { id: string }) => id)).toEqual([head, before]);
  }
  const sql = openSql(database.url, { max: 1 });
  await sql`insert into revision (id, checksum, down_sql) values ('stranger', 'x', '')`;
  expect((await run("stamp", "head")).code).toBe(0);
  expect(await sql`select from revision where id = 'stranger'`).toHaveLength(1);
  expect((await run("stamp", "--purge", "head")).code).toBe(0);
  expect(await sql`select from revision where id = 'stranger'`).toHaveLength(0);
  await sql.end();
}, 60_000);

test("heads --verbose, history --indicate-current, current --check-heads", async () => {
  await using database = await createEmptyTestDatabase();
  const run = on(database.url);
  expect((await run("upgrade")).code).toBe(0);
  const heads = await svc(["database", "heads", "-v"], {});
  expect(heads).toMatchObject({ code: 0, stderr: "" });
  expect(heads.stdout).toStartWith(`Revision     ${head}\nMessage      `);
  expect((await run("current", "--check-heads")).code).toBe(0);
  expect((await run("downgrade", "--allow-data-loss")).code).toBe(0);
  const history = await run("history", "-i");
  expect(history.stdout.match(/\S+ \(current\)/g)).toEqual([`${before} (current)`]);
  expect((await run("history", "-i", "-v")).stdout).toContain(`Revision     ${before} (current)\n`);
  expect(await svc(["database", "history", "--indicate-current"], {})).toEqual(
    failed("Only a database knows what is current: set SVC_DATABASE_URL"),
  );
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

test("merge heads, and commands with a different name in svc", async () => {
  const nowhere = {};
  expect(await svcOfSource(["database", "merge", "heads"], nowhere)).toEqual(
    ok("Nothing to do: there is one head\n"),
  );
  for (const [name, instead] of [
    ["show", "svc database history --verbose --range REV:REV"],
    ["branches", "svc database heads, or svc database history"],
  ]) {
    const { code, stderr } = await svc(["database", name!, "x"], nowhere);
    expect(code).toBe(2);
    expect(stderr).toStartWith(`svc: unknown command: ${name}. Use instead: ${instead}\n`);
  }
}, 60_000);
