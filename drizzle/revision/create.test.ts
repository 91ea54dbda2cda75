import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { index, integer, pgTable, text } from "drizzle-orm/pg-core";
import { createEmptyTestDatabase } from "../../tests/support/database/database.ts";
import { generate } from "../generate/index.ts";
import { findWrongRevisions } from "./check.ts";
import { createRevision, mergeHeads, pendingSql } from "./create.ts";
import { downgrade } from "./downgrade.ts";
import { readRevisionsFrom } from "./history.ts";
import { mergeSnapshots } from "./merge.ts";
import { upgrade } from "./upgrade.ts";
import { readSnapshot, revisionId, type Snapshot } from "./write.ts";

const at = (minute: number) => new Date(Date.UTC(2026, 0, 2, 3, minute));

const one = { harbour: pgTable("harbour", { id: integer("id").primaryKey(), name: text("name").notNull() }) };
const withDepth = {
  harbour: pgTable("harbour", {
    id: integer("id").primaryKey(),
    name: text("name").notNull(),
    depth: integer("depth"),
  }),
};
const withQuay = { ...one, quay: pgTable("quay", { id: integer("id").primaryKey() }) };
const both = { ...withDepth, quay: withQuay.quay };
const renamed = {
  ...both,
  harbour: pgTable("harbour", {
    id: integer("id").primaryKey(),
    title: text("title").notNull(),
    depth: integer("depth"),
  }),
};

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "svc-revisions-"));
});
afterAll(() => rm(directory, { recursive: true }));

const file = (id: string, name: string) => readFile(join(directory, id, name), "utf8");

test("a revision without a message is named after the time, as a schema change", async () => {
  const directory = await mkdtemp(join(tmpdir(), "revisions-"));
  const created = await createRevision({ autogenerate: true, now: at(5), directory, schema: one });
  expect(created!.id).toBe("20260102T0305_schema_change");
  await rm(directory, { recursive: true });
});

describe("a team's revisions, from the first one", () => {
  test("the first has no parents", async () => {
    const created = await createRevision({
      message: "Harbour!",
      autogenerate: true,
      now: at(4),
      directory,
      schema: one,
    });
    expect(created).toMatchObject({ id: "20260102T0304_harbour" });
    expect(readdirSync(join(directory, created!.id)).toSorted()).toEqual([
      "down.sql",
      "manifest.json",
      "snapshot.json",
      "up.sql",
    ]);
    expect(JSON.parse(await file(created!.id, "manifest.json"))).toMatchObject({
      message: "Harbour!",
      parents: [],
      compatible: true,
      transactional: true,
      irreversible: false,
      created_at: "2026-01-02T03:04:00.000Z",
    });
    expect(await file(created!.id, "up.sql")).toStartWith(
      "-- Harbour!\n-- Revision 20260102T0304_harbour, the first\n\nCREATE TABLE",
    );
    expect(await file(created!.id, "down.sql")).toContain("-- svc: data-loss table harbour\nDROP TABLE");
  });

  test("an unchanged schema gives no revision and no pending SQL", async () => {
    expect(
      await createRevision({ message: "x", autogenerate: true, now: at(5), directory, schema: one }),
    ).toBeUndefined();
    expect(await pendingSql(directory, one)).toBe("");
    expect(await pendingSql(directory, withDepth)).toContain('ADD COLUMN "depth"');
    expect(readdirSync(directory)).toHaveLength(1);
  });

  test("an empty revision is for a person to fill in, and runs as it is", async () => {
    const created = await createRevision({ message: "by hand", now: at(6), directory, schema: one });
    const [first] = await readRevisionsFrom(directory);
    expect(readdirSync(join(directory, first!.id))).toContain("snapshot.json.gz");
    expect(readdirSync(join(directory, first!.id))).not.toContain("snapshot.json");
    expect(await readSnapshot(directory, first!.id)).toMatchObject({ tables: expect.anything() });
    // Its SQL has not been written yet.
    expect(JSON.parse(await file(created!.id, "manifest.json"))).toMatchObject({ compatible: false });
    expect(created!.advice[0]).toBe("Write up.sql and down.sql; both may hold several statements");
    await using database = await createEmptyTestDatabase();
    const revisions = await readRevisionsFrom(directory);
    expect((await upgrade({ url: database.url, revisions })).applied).toHaveLength(2);
    expect((await downgrade({ url: database.url, revisions, target: "base" })).reverted).toHaveLength(2);
    expect(
      await createRevision({ message: "x", autogenerate: true, now: at(7), directory, schema: one }),
    ).toBeUndefined();
  });

  test("a change covered by hand-written SQL is not generated again", async () => {
    const created = await createRevision({
      message: "by hand too",
      now: at(7),
      directory,
      schema: { ...one },
    });
    await rm(join(directory, created!.id), { recursive: true });
    const other = await createRevision({
      message: "depth by hand",
      now: at(7),
      directory,
      schema: withDepth,
    });
    expect(other!.advice.join("\n")).toContain("the SQL must make the same change");
    expect(await pendingSql(directory, withDepth)).toBe("");
    await rm(join(directory, other!.id), { recursive: true });
  });

  test("two lines make two heads, which are refused until they are merged", async () => {
    const left = await createRevision({
      message: "depth",
      autogenerate: true,
      now: at(8),
      directory,
      schema: withDepth,
    });
    // The other branch does not know about it.
    const aside = join(directory, "..", `${Date.now()}-aside`);
    await Bun.$`mv ${join(directory, left!.id)} ${aside}`;
    const right = await createRevision({
      message: "quay",
      autogenerate: true,
      now: at(9),
      directory,
      schema: withQuay,
    });
    await Bun.$`mv ${aside} ${join(directory, left!.id)}`;
    expect(
      createRevision({ message: "x", autogenerate: true, now: at(10), directory, schema: both }),
    ).rejects.toThrow(`2 heads: ${left!.id}, ${right!.id}. Join them: svc database merge`);
    const merged = await mergeHeads({ now: at(10), directory });
    expect(merged!.id).toBe("20260102T0310_merge");
    expect(await mergeHeads({ now: at(11), directory })).toBeUndefined();
    // The merge contains both changes, so nothing is left to write.
    expect(
      await createRevision({ message: "x", autogenerate: true, now: at(11), directory, schema: both }),
    ).toBeUndefined();
    await using database = await createEmptyTestDatabase();
    const revisions = await readRevisionsFrom(directory);
    expect((await upgrade({ url: database.url, revisions })).head).toBe(merged!.id);
  });

  test("--rename generates a rename in both directions", async () => {
    const options = { message: "title", autogenerate: true, now: at(12), directory, schema: renamed };
    const created = await createRevision({ ...options, renames: ["harbour.name:title"] });
    expect(await file(created!.id, "up.sql")).toContain('RENAME COLUMN "name" TO "title"');
    expect(await file(created!.id, "down.sql")).toContain('RENAME COLUMN "title" TO "name"');
    expect((await readRevisionsFrom(directory)).at(-1)!.manifest.compatible).toBe(false);
    expect(createRevision({ ...options, renames: ["harbour.nowhere:title"] })).rejects.toThrow("nowhere");
    expect(createRevision({ ...options, autogenerate: false, renames: ["a.b:c"] })).rejects.toThrow(
      "--autogenerate",
    );
  });
});

test("a head that diverged later is compared with its own fork point", async () => {
  const column = (...names: string[]) => ({
    t: pgTable("t", {
      id: integer("id").primaryKey(),
      ...Object.fromEntries(names.map((name) => [name, integer(name)])),
    }),
  });
  const shapes: Record<string, Record<string, unknown>> = {
    root: column(),
    a: column("a"),
    fork: column("old"),
    b: column("old", "b"),
    c: column("c"),
  };
  const node = (id: string, ...parents: string[]) => ({ id, parents });
  const graph = [node("root"), node("a", "root"), node("fork", "root"), node("b", "fork"), node("c", "fork")];
  const snapshots: Record<string, Snapshot> = {};
  for (const [id, schema] of Object.entries(shapes))
    snapshots[id] = (await generate(undefined, schema)).snapshot;
  const merged = await mergeSnapshots(graph, async (id) => structuredClone(snapshots[id]!));
  const { columns } = (merged.tables as Record<string, { columns: object }>)["public.t"]!;
  // `c` dropped the column that `fork` had created.
  expect(Object.keys(columns).toSorted()).toEqual(["a", "b", "c", "id"]);
});

test("heads that change the same thing in different ways cannot be merged", async () => {
  const other = await mkdtemp(join(tmpdir(), "svc-revisions-"));
  const write = (message: string, minute: number, schema: Record<string, unknown>) =>
    createRevision({ message, autogenerate: true, now: at(minute), directory: other, schema });
  await write("one", 1, one);
  const left = await write("left", 2, withDepth);
  await Bun.$`mv ${join(other, left!.id)} ${other}-aside`;
  const deep = {
    harbour: pgTable("harbour", {
      id: integer("id").primaryKey(),
      name: text("name").notNull(),
      depth: text("depth"),
    }),
  };
  await write("right", 3, deep);
  await Bun.$`mv ${other}-aside ${join(other, left!.id)}`;
  expect(mergeHeads({ now: at(4), directory: other })).rejects.toThrow(
    /each changes tables public\.harbour columns depth type/,
  );
  await rm(other, { recursive: true });
});

test("a new revision reports what it loses, and suggests a rename", async () => {
  const other = await mkdtemp(join(tmpdir(), "svc-revisions-"));
  const write = (message: string, minute: number, schema: Record<string, unknown>, renames: string[] = []) =>
    createRevision({ message, autogenerate: true, now: at(minute), directory: other, schema, renames });
  await write("one", 1, both);
  const created = await write("title", 2, renamed);
  expect(created!.advice).toContain("up.sql loses the values of harbour.name");
  const folder = join(other, created!.id);
  expect(created!.advice).toContain(
    `Dropped and added, or renamed? To keep the data: rm -r ${folder}, then run it again with --rename 'harbour.name:title'`,
  );
  await rm(folder, { recursive: true });
  const again = await write("title", 2, renamed, ["harbour.name:title"]);
  expect(again!.advice.join("\n")).not.toContain("loses the values of harbour.name");
  await rm(other, { recursive: true });
});

const invalidIds = ["a/b", "..", "", "head", "heads", "base", "current", "a b", "-x", "x".repeat(81)];

test.each(invalidIds)("--rev-id %p is refused", async (id) => {
  await expect(createRevision({ message: "x", id, now: at(1), directory, schema: one })).rejects.toThrow(
    "cannot name a revision",
  );
});

test("an id that is taken is refused, and the existing revision is unchanged", async () => {
  const [first] = await readRevisionsFrom(directory);
  const before = await file(first!.id, "up.sql");
  expect(
    createRevision({ message: "x", id: first!.id, now: at(1), directory, schema: renamed }),
  ).rejects.toThrow(`Revision ${first!.id} already exists`);
  expect(await file(first!.id, "up.sql")).toBe(before);
});

test("a column with indexes built CONCURRENTLY becomes a chain of revisions", async () => {
  const other = await mkdtemp(join(tmpdir(), "svc-revisions-"));
  const options = { autogenerate: true, directory: other, now: at(1) };
  await createRevision({ ...options, message: "one", schema: one });
  const harbour = pgTable(
    "harbour",
    { id: integer("id").primaryKey(), name: text("name").notNull(), depth: integer("depth") },
    (self) => [
      index("by_name").on(self.name).concurrently(),
      index("by_depth").on(self.depth).concurrently(),
    ],
  );
  const created = await createRevision({ ...options, message: "depth", now: at(2), schema: { harbour } });
  const ids = ["", "_2", "_3"].map((end) => `20260102T0302_depth${end}`);
  expect(created).toMatchObject({ id: ids[2], folders: ids.map((id) => join(other, id)) });
  const revisions = await readRevisionsFrom(other);
  expect(revisions.slice(1).map(({ parents, manifest }) => [parents, manifest.message])).toEqual([
    [["20260102T0301_one"], "depth (1 of 3)"],
    [[ids[0]!], "depth (2 of 3)"],
    [[ids[1]!], "depth (3 of 3)"],
  ]);
  expect(await pendingSql(other, { harbour })).toBe("");
  await using database = await createEmptyTestDatabase();
  const { url } = database;
  expect((await upgrade({ url, revisions })).applied).toHaveLength(4);
  expect((await downgrade({ url, revisions, target: "20260102T0301_one" })).reverted).toHaveLength(3);
  expect(await findWrongRevisions(url, other)).toEqual([]);
  await rm(other, { recursive: true });
});

test("SQL that does not create the tables in the snapshot is found", async () => {
  const other = await mkdtemp(join(tmpdir(), "svc-revisions-"));
  const options = { message: "one", id: "one", autogenerate: true, directory: other, now: at(1) };
  await createRevision({ ...options, schema: withDepth });
  await using database = await createEmptyTestDatabase();
  const path = join(other, "one", "up.sql");
  expect(await findWrongRevisions(database.url, other)).toEqual([]);
  await writeFile(path, (await readFile(path, "utf8")).replace('"depth" integer', '"dept" bigint'));
  expect(await findWrongRevisions(database.url, other)).toEqual([
    "+ column harbour.dept bigint",
    "- column harbour.depth integer",
  ]);
  await rm(other, { recursive: true });
});

test("an id contains the time and the message, in characters that every file system accepts", () => {
  expect(revisionId("Größe, und «mehr»!", at(4))).toBe("20260102T0304_gro_e_und_mehr");
  expect(revisionId("火事", at(4))).toBe("20260102T0304");
  expect(revisionId("../../etc", at(4))).toBe("20260102T0304_etc");
  expect(revisionId("x".repeat(300), at(4)).length).toBeLessThan(60);
});

test("a message cannot inject SQL", async () => {
  const created = await createRevision({
    message: "a\nDROP TABLE harbour;",
    id: "sly",
    now: at(20),
    directory,
    schema: renamed,
  });
  expect(await file(created!.id, "up.sql")).toStartWith("-- a DROP TABLE harbour;\n");
  await rm(join(directory, created!.id), { recursive: true });
});

test("an incomplete or invalid revision folder is reported by name", async () => {
  const other = await mkdtemp(join(tmpdir(), "svc-revisions-"));
  await createRevision({
    message: "one",
    id: "one",
    autogenerate: true,
    now: at(1),
    directory: other,
    schema: one,
  });
  await writeFile(join(other, "one", "manifest.json"), "{");
  expect(readRevisionsFrom(other)).rejects.toThrow("manifest.json of revision one is not JSON");
  await writeFile(join(other, "one", "manifest.json"), "{}");
  expect(readRevisionsFrom(other)).rejects.toThrow("manifest.json of revision one has no list of parents");
  await rm(join(other, "one", "down.sql"));
  expect(readRevisionsFrom(other)).rejects.toThrow("Revision one has no down.sql");
  await rm(join(other, "one", "snapshot.json"));
  expect(readSnapshot(other, "one")).rejects.toThrow("Revision one has no snapshot.json");
  await rm(other, { recursive: true });
});

test("Windows line endings do not change a revision's checksum", async () => {
  const [before] = await readRevisionsFrom(directory);
  for (const name of ["up.sql", "down.sql"]) {
    await writeFile(
      join(directory, before!.id, name),
      (await file(before!.id, name)).replaceAll("\n", "\r\n"),
    );
  }
  expect((await readRevisionsFrom(directory))[0]!.checksum).toBe(before!.checksum);
});
