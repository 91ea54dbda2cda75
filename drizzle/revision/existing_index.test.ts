import { describe, expect, test } from "bun:test";
import { closing, concurrent, isValid, known, table } from "../../tests/support/database/concurrent_index.ts";
import { createEmptyTestDatabase } from "../../tests/support/database/database.ts";
import { testRevision } from "../../tests/support/database/revision.ts";
import { upgrade } from "./upgrade.ts";

// A revision creates an index concurrently, and there is one of that name already.

/** The same revision with a unique index. */
const unique = testRevision("2", ["1"], concurrent.up.replace("index", "unique index"));

/** A database at the revision before. */
async function withTable() {
  const database = await createEmptyTestDatabase();
  const { url } = database;
  await upgrade({ url, revisions: known, target: "1" });
  const { client } = closing(url);
  const close = async () => {
    await client.end();
    await database[Symbol.asyncDispose]();
  };
  return { url, client, [Symbol.asyncDispose]: close };
}

describe("a revision that creates an index", () => {
  test("waits for another session that builds an index of that name, and leaves it alone", async () => {
    await using database = await createEmptyTestDatabase();
    const { url } = database;
    await upgrade({ url, revisions: known, target: "1" });
    await using writer = closing(url);
    await using builder = closing(url);
    await using sql = closing(url);
    await writer.client`begin`;
    await writer.client`insert into a values (1)`;
    const build = builder.client`create index concurrently a_idx on a ((id + 1))`.then(
      () => "built",
      (error: Error) => error.message,
    );
    while ((await isValid(sql.client, "a_idx")) === undefined) await Bun.sleep(10);
    const { promise: waits, resolve: notice } = Promise.withResolvers<string>();
    const upgraded = upgrade({ url, revisions: known, notice }).catch((error: Error) => error.message);
    expect(await Promise.race([waits, build])).toContain("waiting for another session that builds an index");
    await writer.client`commit`;
    expect(await build).toBe("built");
    expect(await upgraded).toContain('relation "a_idx" already exists');
    expect(await isValid(sql.client, "a_idx")).toBe(true);
  });

  test("does not mistake another index of the same name for ours", async () => {
    await using at = await withTable();
    await at.client`create index a_idx on a ((id + 1))`;
    await expect(upgrade({ url: at.url, revisions: known })).rejects.toThrow("already exists");
    const tolerant = testRevision("2", ["1"], concurrent.up.replace("a_idx", "if not exists a_idx"));
    await expect(upgrade({ url: at.url, revisions: [table, tolerant] })).rejects.toThrow("already exists");
  });

  test("replaces an invalid one only if it is the same", async () => {
    await using at = await withTable();
    await at.client`insert into a values (1), (1)`;
    await at.client`create unique index concurrently a_idx on a (id)`.catch(() => {});
    await at.client`delete from a`;
    await expect(upgrade({ url: at.url, revisions: known })).rejects.toThrow("already exists");
    expect(await isValid(at.client, "a_idx")).toBe(false);
    expect(await upgrade({ url: at.url, revisions: [table, unique] })).toMatchObject({ applied: ["2"] });
    expect(await isValid(at.client, "a_idx")).toBe(true);
  });

  test("leaves no invalid index behind when it fails", async () => {
    await using at = await withTable();
    await at.client`insert into a values (1), (1)`;
    await expect(upgrade({ url: at.url, revisions: [table, unique] })).rejects.toThrow(
      "Nothing of revision 2",
    );
    expect(await isValid(at.client, "a_idx")).toBeUndefined();
    expect(await upgrade({ url: at.url, revisions: known })).toMatchObject({ applied: ["2"] });
  });
});

describe("an existing index with the name of a new one", () => {
  const wanted = "create unique index concurrently b_idx on a (lower(b) desc, id) include (c) where a.id > 0";
  const base = testRevision(
    "1",
    [],
    'create table a (gone int, id int, b text collate "C", c int); alter table a drop gone; create table other (like a);',
  );

  /** A database where the revision failed at its second index, because the name was taken. */
  async function halfApplied(taken: string, index: string) {
    const up = `-- svc: no-transaction\ncreate index concurrently a_idx on a (id);\n${index};`;
    const revisions = [base, testRevision("2", ["1"], up)];
    const database = await createEmptyTestDatabase();
    const { url } = database;
    await upgrade({ url, revisions, target: "1" });
    const sql = closing(url);
    await sql.client.unsafe(taken);
    await expect(upgrade({ url, revisions })).rejects.toThrow("already exists");
    const state = async () => (await sql.client`select state from revision where id = '2'`)[0]?.state;
    return { url, revisions, state, [Symbol.asyncDispose]: () => sql[Symbol.asyncDispose]() };
  }

  test.each([
    [wanted.replace("unique", ""), wanted],
    [wanted.replace("on a", "on other").replace("a.id", "id"), wanted],
    [wanted.replace(" desc", ""), wanted],
    [wanted.replace("b)", "(b || ''))"), wanted],
    [wanted.replace(" include (c)", ""), wanted],
    [wanted.replace(" where a.id > 0", ""), wanted],
    ["create index b_idx on a using hash (b)", wanted],
    ["alter table a add constraint b_idx unique (id)", "create unique index concurrently b_idx on a (id)"],
  ])("fails the upgrade each time: %s", async (taken, index) => {
    await using half = await halfApplied(taken, index);
    await expect(upgrade(half)).rejects.toThrow(
      'up.sql of revision 2, line 3: relation "b_idx" already exists',
    );
    expect(await half.state()).toBe("applying");
  });

  test("counts as created if it is the same, written differently", async () => {
    await using database = await createEmptyTestDatabase();
    const { url } = database;
    await upgrade({ url, revisions: [base] });
    await using sql = closing(url);
    await sql.client.unsafe(
      'create unique index b_idx on public."a" using btree (LOWER(b) desc nulls first, id asc) include (c) where (id > 0)',
    );
    const revisions = [base, testRevision("2", ["1"], `-- svc: no-transaction\n${wanted}`)];
    expect(await upgrade({ url, revisions })).toMatchObject({ applied: ["2"] });
  });
});
