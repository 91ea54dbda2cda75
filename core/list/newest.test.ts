import { beforeAll, expect, test } from "bun:test";
import { and, desc, like, type SQL, sql } from "drizzle-orm";
import fc from "fast-check";
import { openDatabase } from "../../drizzle/client.ts";
import { document, incident } from "../../drizzle/schema/index.ts";
import { useDatabase } from "../../tests/support/database/database.ts";
import { insertIncident } from "../../tests/support/domain/incident.ts";
import "../../tests/support/seed.ts";
import { noteAsked, pagesRead, rowsRead } from "../../tests/support/database/statements.ts";
import { mayReadOf } from "../incident/visibility/visibility.ts";
import { newestMatches } from "./newest.ts";
import { wordsOf } from "./page.ts";

const at = new Date("2026-12-01T12:00:00Z").toISOString();
const member = { user: "carol@example.com", admin: false };
const ranked = 100;

const client = useDatabase(2);
let restricted: number;
beforeAll(async () => {
  ({ incidentId: restricted } = await insertIncident(client.db, new Date(at)));
  await client.db.update(incident).set({ visibility: "Restricted" });
});

/** Inserts records whose names are given by an expression of `n`. */
async function insert(count: number, name: SQL, incidentId: number | SQL | null = null): Promise<void> {
  await client.db.execute(sql`
    insert into document (name, resource_type, incident_id, created_at, updated_at)
    select ${name}, 'reference', ${incidentId}::bigint, ${at}, ${at} from generate_series(1, ${count}::int) as n`);
}

const oneOf = (share: number, word: string) =>
  sql`case when n % ${share}::int = 0 then ${word}::text else 'filler' end`;

/** The newest records named by the word, from a query that needs no index. */
const expected = (word: string, condition?: SQL) =>
  client.db
    .select({ id: document.id })
    .from(document)
    .where(and(like(document.name, word), mayReadOf(member, document.incidentId), condition))
    .orderBy(desc(document.id))
    .limit(ranked);

function search(word: string, { db = client.db, filter }: { db?: typeof client.db; filter?: SQL } = {}) {
  const matches = sql`${document.search} @@ ${wordsOf(word)}`;
  const condition = and(mayReadOf(member, document.incidentId), filter);
  const filtered = filter !== undefined;
  return db
    .select({ id: document.id })
    .from(document)
    .where(newestMatches(document.id, matches, condition, { ranked, filtered }))
    .orderBy(desc(document.id));
}

/** Measures the search for the word as in a table that is too large for a sequential scan. */
async function measured(word: string, measure: typeof rowsRead): Promise<number> {
  const alone = openDatabase(client.url, 1);
  try {
    await alone.db.execute(sql`set enable_seqscan = off`);
    const asked = noteAsked(alone.db);
    await search(word, { db: alone.db });
    return await measure(alone.db, asked[0]!);
  } finally {
    await alone.close();
  }
}

/** The rows that PostgreSQL reads for it, in all steps. */
const rowsReadFor = (word: string) => measured(word, rowsRead);
/** The page accesses, including repeated ones. */
const pagesReadFor = (word: string) => measured(word, pagesRead);

/** Skips this many ids: a search estimates the table's size from the newest id. */
async function skip(ids: number): Promise<void> {
  const [row] = await client.db.execute<{ last: string | null }>(sql`select max(id) as last from document`);
  const next = Number(row!.last ?? 0) + 1 + ids;
  await client.db.execute(sql.raw(`alter table document alter column id restart with ${next}`));
}

/** A run of records: how many, how often the word occurs, how often a match is hidden, and how many ids are skipped. */
const stretch = fc.record({
  count: fc.integer({ min: 1, max: 3000 }),
  share: fc.constantFrom(1, 2, 7, 40, 300, 5000),
  hidden: fc.constantFrom(1, 2, 10, 1_000_000),
  gap: fc.constantFrom(0, 0, 1, 5000, 200_000),
});

test("finds the newest readable matches for any distribution, with and without a filter", async () => {
  let nth = 0;
  const property = fc.asyncProperty(fc.array(stretch, { minLength: 1, maxLength: 4 }), async (stretches) => {
    nth += 1;
    const word = `beast${nth}`;
    for (const { count, share, hidden, gap } of stretches) {
      await skip(gap);
      const hiding = sql`case when (n / ${share}::int) % ${hidden}::int = 0 then ${restricted}::bigint end`;
      await insert(count, oneOf(share, word), hiding);
    }
    expect(await search(word)).toEqual(await expected(word));
    const odd = sql`${document.id} % 2 = 1`;
    expect(await search(word, { filter: odd })).toEqual(await expected(word, odd));
  });
  await fc.assert(property, { numRuns: 15 });
});

test("ten thousand hidden matches displace none, old or new", async () => {
  await insert(150, sql`'dodo'`);
  await insert(10_001, sql`'dodo'`, restricted);
  await insert(1, sql`'dodo'`);
  await insert(1000, sql`'filler'`);
  expect(await search("dodo")).toEqual(await expected("dodo"));
  expect(await expected("dodo")).toHaveLength(ranked);
});

test("hidden matches in between displace none before or after them, in any block", async () => {
  await insert(120, sql`'quagga'`);
  await skip(100_000);
  await insert(40, sql`'quagga'`);
  await insert(13_000, sql`'quagga'`, restricted);
  await skip(9000);
  await insert(20, sql`'quagga'`);
  await insert(2000, sql`'filler'`);
  expect(await expected("quagga")).toHaveLength(ranked);
  expect(await search("quagga")).toEqual(await expected("quagga"));
  await insert(15, sql`'quagga'`);
  expect(await search("quagga")).toEqual(await expected("quagga"));
});

test("hidden matches are not checked one by one: less than a page is read for each", async () => {
  const hidden = 30_000;
  await insert(hidden, sql`'narwhal'`, restricted);
  await insert(1000, sql`'filler'`);
  await client.db.execute(sql`analyze`);
  expect(await search("narwhal")).toEqual([]);
  expect(await pagesReadFor("narwhal")).toBeLessThan(hidden);
  // Nor if a few are visible, so that more can be expected.
  await insert(12, sql`'narwhal'`);
  expect(await pagesReadFor("narwhal")).toBeLessThan(hidden);
});

test("for a word in nearly all records or in none, only the newest records are read", async () => {
  await insert(20_000, sql`'heron'`);
  await client.db.execute(sql`analyze document`);
  expect(await rowsReadFor("heron")).toBeLessThan(5000);
  expect(await rowsReadFor("nothing")).toBeLessThan(10_000);
});

test("for a word in every 50th record, only the newest blocks are read", async () => {
  await insert(20_000, sql`'lemur'`);
  await insert(15_000, oneOf(50, "lemur"));
  await client.db.execute(sql`analyze document`);
  expect(await rowsReadFor("lemur")).toBeLessThan(12_000);
  expect(await search("lemur")).toEqual(await expected("lemur"));
});

test("for a word that used to be common, only part of a large table is read", async () => {
  for (let nth = 0; nth < 12; nth += 1) {
    await skip(70_000);
    await insert(3000, sql`'mammoth'`);
  }
  await skip(70_000);
  await insert(1000, sql`'filler'`);
  await client.db.execute(sql`analyze document`);
  // Several steps each read ten thousand before they know that it is not rare.
  expect(await rowsReadFor("mammoth")).toBeLessThan(110_000);
  expect(await search("mammoth")).toEqual(await expected("mammoth"));
});

test("for a common word that is not in the newest records, only the newest blocks with it are read", async () => {
  await insert(30_000, sql`'ibis'`);
  await insert(6000, sql`'filler'`);
  await client.db.execute(sql`analyze document`);
  expect(await rowsReadFor("ibis")).toBeLessThan(20_000);
  expect(await search("ibis")).toEqual(await expected("ibis"));
});

test("a search reads no list of entries that are not in the word index yet", async () => {
  await insert(10, sql`'plover'`);
  const [row] = await client.db.execute(
    sql`select gin_clean_pending_list('document_search_block_idx') as pages`,
  );
  expect(row).toEqual({ pages: "0" });
});
