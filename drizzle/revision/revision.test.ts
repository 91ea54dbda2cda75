import { describe, expect, test } from "bun:test";
import { sha256Hex } from "../../platform/secret.ts";
import { createEmptyTestDatabase } from "../../tests/support/database/database.ts";
import { testRevision } from "../../tests/support/database/revision.ts";
import { openSql } from "../client.ts";
import { generate } from "../generate/index.ts";
import * as schema from "../schema/index.ts";
import { findWrongRevisions } from "./check.ts";
import { downgrade } from "./downgrade.ts";
import { headsOf, inOrder, readRevisions } from "./history.ts";
import { inspectDatabase } from "./inspect.ts";
import { stamp } from "./stamp.ts";
import { upgrade } from "./upgrade.ts";

const node = (id: string, ...parents: string[]) => ({ id, parents });

describe("the graph", () => {
  test("heads are the revisions that nothing follows", () => {
    expect(headsOf([node("a"), node("b", "a"), node("c", "a")])).toEqual(["b", "c"]);
  });

  test("each revision comes after its parents, whatever their names", () => {
    const graph = [node("a", "z"), node("m", "a", "b"), node("z"), node("b", "z")];
    expect(inOrder(graph).map(({ id }) => id)).toEqual(["z", "a", "b", "m"]);
  });

  test("a missing parent and a cycle are reported by name", () => {
    expect(() => inOrder([node("a", "x")])).toThrow("a follows x");
    expect(() => inOrder([node("a", "b"), node("b", "a")])).toThrow("a, b form a cycle");
  });
});

describe("upgrade", () => {
  test("brings an empty database to head, and the second run changes nothing", async () => {
    await using database = await createEmptyTestDatabase();
    const revisions = await readRevisions();
    const lines: string[] = [];
    const first = await upgrade({ url: database.url, log: (line) => lines.push(line) });
    expect(first.applied).toEqual(revisions.map(({ id }) => id));
    expect(lines).toEqual(first.applied);
    expect(await upgrade({ url: database.url })).toMatchObject({ applied: [], head: first.head });
  });

  test("of eight concurrent upgrades, one does the work and none fails", async () => {
    await using database = await createEmptyTestDatabase();
    const results = await Promise.all(Array.from({ length: 8 }, () => upgrade({ url: database.url })));
    expect(results.filter(({ applied }) => applied.length > 0)).toHaveLength(1);
  });

  test("another program's table of the name of ours is left alone", async () => {
    await using database = await createEmptyTestDatabase();
    const { url } = database;
    const sql = openSql(url, { max: 1 });
    await sql`create table revision (id int, applied_at date)`;
    const refusal = "public.revision is not the table where svc records revisions: rename it, or use another";
    await expect(upgrade({ url })).rejects.toThrow(refusal);
    await expect(stamp({ url, target: "head" })).rejects.toThrow(refusal);
    await expect(inspectDatabase(url)).rejects.toThrow(refusal);
    await expect(downgrade({ url })).rejects.toThrow(refusal);
    expect(await sql`select tablename from pg_tables where schemaname = 'public'`).toHaveLength(1);
    await sql.end();
  });

  test("timeouts preset by the database do not cut a revision short", async () => {
    await using database = await createEmptyTestDatabase();
    const sql = openSql(database.url, { max: 1 });
    const name = new URL(database.url).pathname.slice(1);
    for (const limit of ["transaction_timeout", "statement_timeout", "idle_session_timeout"]) {
      await sql.unsafe(`alter database "${name}" set ${limit} = '100ms'`);
    }
    const slow = [
      testRevision("1", [], "select pg_sleep(0.3)"),
      testRevision("2", ["1"], "select pg_sleep(0.3)"),
    ];
    expect(await upgrade({ url: database.url, revisions: slow })).toMatchObject({ applied: ["1", "2"] });
    await sql.end();
  });

  test("an operator's mistake gives one clear sentence", async () => {
    await using database = await createEmptyTestDatabase();
    const url = new URL(database.url);
    const variant = (change: Partial<URL>) => upgrade({ url: Object.assign(new URL(url), change).href });
    expect(variant({ password: "wrong" })).rejects.toThrow("refuses this user or password");
    expect(variant({ pathname: "/nowhere" })).rejects.toThrow("does not exist");
    expect(variant({ port: "9" })).rejects.toThrow("does not answer");
    const sql = openSql(database.url, { max: 1 });
    await sql`do $$ begin execute format('alter database %I set default_transaction_read_only = on', current_database()); end $$`;
    await sql.end();
    expect(upgrade({ url: database.url })).rejects.toThrow("read-only");
  });
});

test("the revisions create what the newest snapshot describes", async () => {
  await using database = await createEmptyTestDatabase();
  expect(await findWrongRevisions(database.url)).toEqual([]);
});

test("the newest snapshot matches the source schema: no change without a revision", async () => {
  const revisions = await readRevisions();
  const [head] = headsOf(revisions);
  const snapshot = await import(`../../drizzle/revisions/${head}/snapshot.json`);
  expect((await generate(snapshot.default, schema)).parts).toEqual([]);
});

test("released revisions never change, since databases store their checksums", async () => {
  const newest = "20261125T2150_initial";
  const released = (await readRevisions()).filter(({ id }) => id <= newest);
  const lines = released.map(({ id, checksum }) => `${id} ${checksum}\n`).sort();
  expect(sha256Hex(lines.join(""))).toBe("43d8f5332a68cdebdd3b902b58abd36db8a19f5c65c8314bd6d26b5bb3eca4da");
});

test("down reverts everything that up created", async () => {
  await using database = await createEmptyTestDatabase();
  await upgrade({ url: database.url });
  const revisions = await readRevisions();
  const sql = openSql(database.url, { max: 1 });
  for (const revision of inOrder(revisions).toReversed()) await sql.unsafe(revision.down);
  const left = await sql`select tablename from pg_tables where schemaname = 'public'`;
  expect(left.map(({ tablename }) => tablename)).toEqual(["revision"]);
  await sql.end();
});
