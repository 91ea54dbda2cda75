import { describe, expect, test } from "bun:test";
import { readRevisions } from "../../../drizzle/revision/history.ts";
import { head, ok, on } from "../../../tests/support/cli/database.ts";
import { contentOf, using } from "../../../tests/support/database/backup.ts";
import { createEmptyTestDatabase, createTestDatabase } from "../../../tests/support/database/database.ts";
import { readExample, rowsAt } from "../../../trial/example/data.ts";

const { incident, document, individual } = rowsAt(await readExample(), new Date());
const loaded = `Loaded the example: ${incident.length} incidents, ${document.length} documents, ${individual.length} people (revision ${head})\n`;

describe("svc database restore --example", () => {
  test("creates schema, defaults, triggers and the example in an empty database", async () => {
    await using database = await createEmptyTestDatabase();
    const run = on(database.url);
    expect(await run("restore", "--example")).toEqual(ok(loaded));
    expect(await run("upgrade")).toMatchObject({ code: 0, stderr: "" });
    expect((await run("check", "--drift")).code).toBe(0);
    await using(database.url, async (sql) => {
      const [row] = await sql`select max(reported_at) > now() - interval '1 day' as today,
        (select count(*)::int from revision where state = 'applied') as revisions from incident`;
      expect(row).toMatchObject({ today: true, revisions: (await readRevisions()).length });
    });
    expect(await run("populate")).toEqual(ok("Nothing to do: all defaults exist\n"));
  });

  test("replaces existing data with --yes", async () => {
    await using database = await createTestDatabase();
    const run = on(database.url);
    await using(
      database.url,
      (sql) => sql`insert into audit_log (at, actor, action) values (now(), 'x', 'y')`,
    );
    expect(await run("restore", "--example", "--yes")).toEqual(ok(loaded));
    await using(database.url, async (sql) => {
      expect(await sql`select from audit_log`).toHaveLength(0);
      expect(await sql`select from incident`).toHaveLength(incident.length);
    });
  });

  test("a failed restore changes nothing", async () => {
    await using database = await createTestDatabase();
    const run = on(database.url);
    await using(database.url, (sql) =>
      sql.unsafe("create schema theirs; create view theirs.incidents as select id from public.incident"),
    );
    const before = await contentOf(database.url);
    const refused = await run("restore", "--example", "--yes");
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toMatch(/^svc: Nothing was dropped: view theirs\.incidents depends on /);
    expect(await contentOf(database.url)).toEqual(before);
  });
});
