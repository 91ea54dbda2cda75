import { describe, expect, test } from "bun:test";
import { readRevisions } from "../../../drizzle/revision/history.ts";
import { head, ok } from "../../../tests/support/cli/database.ts";
import { svc, svcOnTerminal } from "../../../tests/support/cli/process.ts";
import { contentOf, temporaryDirectory, using } from "../../../tests/support/database/backup.ts";
import { createEmptyTestDatabase, createTestDatabase } from "../../../tests/support/database/database.ts";
import { readExample, rowsAt } from "../../../trial/example/data.ts";

const { incident, document, individual } = rowsAt(await readExample(), new Date());
const loaded = `Loaded the example: ${incident.length} incidents, ${document.length} documents, ${individual.length} people (revision ${head})\n`;

/** Without PostgreSQL's tools on the PATH. */
async function inDirectory(url: string) {
  const directory = await temporaryDirectory();
  const env = { SVC_DATABASE_URL: url, PATH: directory.path };
  return {
    run: (...args: string[]) => svc(["database", ...args], env, directory.path),
    terminal: (...args: string[]) => svcOnTerminal(["database", ...args], env, { cwd: directory.path }),
    [Symbol.asyncDispose]: () => directory[Symbol.asyncDispose](),
  };
}

describe("svc database restore --example", () => {
  test("creates schema, defaults, triggers and the example in an empty database", async () => {
    await using database = await createEmptyTestDatabase();
    await using at = await inDirectory(database.url);
    expect(await at.run("restore", "--example")).toEqual(ok(loaded));
    expect(await at.run("upgrade")).toMatchObject({ code: 0, stderr: "" });
    expect((await at.run("check", "--drift")).code).toBe(0);
    await using(database.url, async (sql) => {
      const [row] = await sql`select max(reported_at) > now() - interval '1 day' as today,
        (select count(*)::int from revision where state = 'applied') as revisions from incident`;
      expect(row).toMatchObject({ today: true, revisions: (await readRevisions()).length });
    });
    expect(await at.run("populate")).toEqual(ok("Nothing to do: all defaults exist\n"));
  });

  test("replaces existing data after confirmation or with --yes", async () => {
    await using database = await createTestDatabase();
    await using at = await inDirectory(database.url);
    await using(
      database.url,
      (sql) => sql`insert into audit_log (at, actor, action) values (now(), 'x', 'y')`,
    );
    const before = await contentOf(database.url);
    const refused = await at.run("restore", "--example");
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toMatch(/^svc: This replaces all \d+ tables of the database .+ add --yes\n$/);
    const wrong = at.terminal("restore", "--example");
    await wrong.shows(/To continue, type its name/);
    wrong.press("svc\n");
    expect(await wrong.exitCode()).toBe(1);
    expect(await contentOf(database.url)).toEqual(before);
    expect(await at.run("restore", "--example", "--yes")).toEqual(ok(loaded));
    await using(database.url, async (sql) => {
      expect(await sql`select from audit_log`).toHaveLength(0);
      expect(await sql`select from incident`).toHaveLength(incident.length);
    });
    // Once more, over the example.
    expect(await at.run("restore", "--example", "--yes")).toEqual(ok(loaded));
  });

  test("a failed restore changes nothing", async () => {
    await using database = await createTestDatabase();
    await using at = await inDirectory(database.url);
    await using(database.url, (sql) =>
      sql.unsafe("create schema theirs; create view theirs.incidents as select id from public.incident"),
    );
    const before = await contentOf(database.url);
    const refused = await at.run("restore", "--example", "--yes");
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toMatch(/^svc: Nothing was dropped: view theirs\.incidents depends on /);
    expect(await contentOf(database.url)).toEqual(before);
  });
});
