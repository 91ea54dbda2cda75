import { beforeAll, expect, test } from "bun:test";
import { and, desc, eq, inArray, type SQL, sql } from "drizzle-orm";
import { document, incident } from "../../drizzle/schema/index.ts";
import { useDatabase } from "../../tests/support/database/database.ts";
import { insertIncident } from "../../tests/support/domain/incident.ts";
import { mayReadOf } from "../incident/visibility/visibility.ts";
import { type List, rankedMatches, startPage } from "./page.ts";

const at = new Date("2026-12-01T12:00:00Z");
const member = { user: "carol@example.com", admin: false };

const client = useDatabase(2);
let restricted: number;
beforeAll(async () => {
  ({ incidentId: restricted } = await insertIncident(client.db, at));
  await client.db.update(incident).set({ visibility: "Restricted" });
});

/** Returns their ids, oldest first. */
async function insert(count: number, name: string, incidentId: number | null = null): Promise<number[]> {
  const rows = Array.from({ length: count }, () => ({
    name,
    incidentId,
    resourceType: "reference",
    createdAt: at,
    updatedAt: at,
  }));
  const made = await client.db.insert(document).values(rows).returning({ id: document.id });
  return made.map(({ id }) => id).sort((a, b) => a - b);
}

const documents: List<"id"> = {
  name: "documents",
  id: document.id,
  search: document.search,
  defaultSort: "id",
  sorts: { id: { by: document.id, kind: "id" } },
};

async function read(q: string, cursor?: string, limit = 80, filter?: ReturnType<typeof eq>) {
  const page = startPage(documents, { q, limit, cursor }, { filter: filter && "given" });
  const rows = await client.db
    .select({ item: { id: document.id }, key: page.key })
    .from(document)
    .where(page.within(and(mayReadOf(member, document.incidentId), filter)))
    .orderBy(...page.orderBy)
    .limit(page.limit);
  return page.finish(rows);
}

/** Returns the ids on all pages. `between` runs after each page. */
async function walk(q: string, between = async () => {}): Promise<number[]> {
  const seen: number[] = [];
  let cursor: string | undefined;
  do {
    const { items, next_cursor } = await read(q, cursor);
    seen.push(...items.map(({ id }) => id));
    cursor = next_cursor ?? undefined;
    if (cursor) await between();
  } while (cursor);
  return seen;
}

test("ranks only the newest matches", async () => {
  const [best] = await insert(1, "walrus walrus walrus");
  const rest = await insert(rankedMatches, "a walrus beside the sea");
  const seen = await walk("walrus");
  expect(seen).toEqual(rest.toReversed());
  expect(seen).not.toContain(best);
  // Within the window, the best match comes first.
  const [newer] = await insert(1, "walrus walrus walrus");
  expect(await walk("walrus")).toEqual([newer!, ...rest.slice(1).toReversed()]);
});

test("hidden and filtered records do not count towards the window", async () => {
  const seen = await insert(3, "otter");
  await insert(rankedMatches, "otter", restricted);
  expect(await walk("otter")).toEqual(seen.toReversed());
  const { items } = await read("otter", undefined, 80, inArray(document.id, [seen[0]!]));
  expect(items.map(({ id }) => id)).toEqual([seen[0]!]);
});

test("pages show each match once while matches are inserted and deleted", async () => {
  const window = await insert(rankedMatches + 20, "a heron beside the lake");
  const added: number[] = [];
  const seen = await walk("heron", async () => {
    added.push(...(await insert(5, "heron heron")), ...(await insert(5, "a heron beside a very long lake")));
    // These are not shown yet, and older than everything ranked.
    await client.db.delete(document).where(inArray(document.id, window.splice(0, 5)));
  });
  expect(seen).toEqual(window.slice(-rankedMatches).toReversed());
  expect(seen.filter((id) => added.includes(id))).toEqual([]);
});

test("a match that commits late with an older id displaces none", async () => {
  const window = await insert(rankedMatches, "a stork beside the river");
  const gap = window[rankedMatches - 100]!;
  await client.db.update(document).set({ name: "something else" }).where(eq(document.id, gap));
  const late = () =>
    client.db.update(document).set({ name: "a stork beside the river" }).where(eq(document.id, gap));
  await insert(1, "a stork beside the river");
  const seen = await walk("stork", async () => void (await late()));
  expect(seen).toContain(window[0]!);
  expect(new Set(seen).size).toBe(seen.length);
});

/** Inserts records named `name`, an expression that may use `n`. */
async function insertMany(count: number, name: SQL): Promise<void> {
  await client.db.execute(sql`
    insert into document (name, resource_type, created_at, updated_at)
    select ${name}, 'reference', ${at.toISOString()}, ${at.toISOString()} from generate_series(1, ${count}::int) as n`);
}

const newestOf = async (name: string, count: number) => {
  const rows = await client.db
    .select({ id: document.id })
    .from(document)
    .where(eq(document.name, name))
    .orderBy(desc(document.id))
    .limit(count);
  return rows.map(({ id }) => id);
};

test("words of old records are found and ranked, however many newer records there are", async () => {
  const [old] = await insert(1, "axolotl");
  await insert(1, "pelican pelican pelican");
  const rest = await insert(rankedMatches, "a pelican beside the sea");
  await insertMany(30_001, sql`'filler'`);
  expect(await walk("axolotl")).toEqual([old!]);
  expect(await walk("pelican")).toEqual(rest.toReversed());
});

test("a word in every 3rd, 50th or 1000th record: finds the newest matches without a gap", async () => {
  await insert(rankedMatches, "gull");
  await insertMany(
    30_000,
    sql`case when n % 1000 = 0 then 'gull' when n % 50 = 0 then 'tern' when n % 3 = 0 then 'skua' else 'n' end`,
  );
  for (const word of ["gull", "tern", "skua"])
    expect(await walk(word)).toEqual(await newestOf(word, rankedMatches));
});

test("a filter finds the one record that it allows, however many others match", async () => {
  await insertMany(10_001, sql`'puffin'`);
  const [wanted] = await insert(1, "puffin");
  await insertMany(30_001, sql`'filler'`);
  const { items } = await read("puffin", undefined, 80, eq(document.id, wanted!));
  expect(items.map(({ id }) => id)).toEqual([wanted!]);
});

/** Makes the table look larger to a search, which estimates the size from the newest id. */
const goOnAt = (id: number) =>
  client.db.execute(sql.raw(`alter table document alter column id restart with ${id}`));
const oneOf50 = (name: string) => sql`case when n % 50 = 0 then ${name}::text else 'n' end`;

test("a word in every 50th of many records: finds those with near ids, or all if these are too few", async () => {
  await goOnAt(500_000);
  await insertMany(6000, oneOf50("newt"));
  const hidden = await insert(10, "newt", restricted);
  await insertMany(6000, oneOf50("newt"));
  const newts = await newestOf("newt", rankedMatches + hidden.length);
  expect(await walk("newt")).toEqual(newts.filter((id) => !hidden.includes(id)));
  // They are denser among the newest records than elsewhere.
  await insert(rankedMatches, "toad");
  await goOnAt(600_000);
  await insertMany(1000, oneOf50("toad"));
  expect(await walk("toad")).toEqual(await newestOf("toad", rankedMatches));
});
