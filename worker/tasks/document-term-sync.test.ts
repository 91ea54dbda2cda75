import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { and, asc, eq, sql } from "drizzle-orm";
import { document, documentContent, documentTerm, term } from "../../drizzle/schema/index.ts";
import { fakeDocument } from "../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../plugins/fake/plugins.ts";
import { refuseRows } from "../../tests/support/database/refused_rows.ts";
import { noteAsked, rowsRead } from "../../tests/support/database/statements.ts";
import { startTaskTest, type TaskTest } from "../../tests/support/domain/scheduled_task.ts";
import { documentTermSync } from "./document-term-sync.ts";

let its: TaskTest;
beforeAll(async () => {
  its = await startTaskTest();
});
afterAll(() => its[Symbol.asyncDispose]());
beforeEach(async () => {
  await its.db.execute(sql`truncate document, term cascade`);
});

const vector = ["data loss", "credential leak", "pii export", "leak", "export"];
const sentence = "A credential leak led to data loss in kafka and a pii export today";
const stamps = () => ({ createdAt: its.clock.now(), updatedAt: its.clock.now() });
const own = (name = "markdown") => fakeDocument({}, { slug: name });
const sync = (...plugins: ReturnType<typeof own>[]) => its.run(documentTermSync, pluginsOf(...plugins));

async function addTerms(...texts: string[]): Promise<void> {
  await its.db.insert(term).values(texts.map((text) => ({ text, ...stamps() })));
}
async function addDocument(text?: string, pluginSlug = "markdown"): Promise<number> {
  const place = { name: "Notes", resourceType: "reference", pluginSlug, resourceId: crypto.randomUUID() };
  const [row] = await its.db
    .insert(document)
    .values({ ...place, ...stamps() })
    .returning({ id: document.id });
  if (text !== undefined) await write(row!.id, text);
  return row!.id;
}
async function write(documentId: number, content: string): Promise<void> {
  const hash = new Bun.CryptoHasher("sha256").update(content).digest();
  const values = { content, hash, updatedAt: its.clock.now() };
  await its.db
    .insert(documentContent)
    .values({ documentId, ...values })
    .onConflictDoUpdate({ target: documentContent.documentId, set: values });
  await its.db.update(document).set({ contentHash: hash }).where(eq(document.id, documentId));
}
const termsOf = async (documentId: number) =>
  (
    await its.db
      .select({ text: term.text, source: documentTerm.source })
      .from(documentTerm)
      .innerJoin(term, eq(term.id, documentTerm.termId))
      .where(eq(documentTerm.documentId, documentId))
      .orderBy(asc(term.id))
  ).map(({ text, source }) => (source === "Found" ? text : `${text} (${source})`));

test("finds the terms of a text, including overlapping ones, but no undiscoverable terms", async () => {
  await addTerms(...vector, "kafka", "today");
  await its.db.update(term).set({ discoverable: false }).where(eq(term.text, "kafka"));
  await its.db
    .update(term)
    .set({ source: "x", externalId: "1", deletedAt: its.clock.now() })
    .where(eq(term.text, "today"));
  const id = await addDocument(sentence);
  expect((await sync(own())).result).toEqual({ done: 1, skipped: 0, failed: 0 });
  expect(await termsOf(id)).toEqual(vector);
  const [row] = await its.db.select().from(document);
  expect(row).toMatchObject({ version: 1, termContentHash: row!.contentHash });
});

describe("a text is skipped until", () => {
  let id: number;
  beforeEach(async () => {
    await addTerms("leak", "export");
    id = await addDocument("a leak");
    await sync(own());
    expect(await termsOf(id)).toEqual(["leak"]);
  });

  test("anything changes: an unchanged text is not read, and nothing is written", async () => {
    const before = { ...its.sent };
    expect((await sync(own())).result).toEqual({ done: 0, skipped: 0, failed: 0 });
    // One statement for the terms, one for the documents.
    expect(its.sent.statements - before.statements).toBe(2);
    expect(its.sent.transactions).toBe(before.transactions);
  });

  test("its content changes: stale links are removed", async () => {
    await write(id, "an export");
    expect((await sync(own())).result.done).toBe(1);
    expect(await termsOf(id)).toEqual(["export"]);
  });

  test("a term is added or removed", async () => {
    await addTerms("a");
    expect((await sync(own())).result.done).toBe(1);
    expect(await termsOf(id)).toEqual(["leak", "a"]);
    await its.db.update(term).set({ discoverable: false }).where(eq(term.text, "leak"));
    await sync(own());
    expect(await termsOf(id)).toEqual(["a"]);
  });

  test("a user removes one of its terms", async () => {
    await its.db.delete(documentTerm);
    await its.db.update(document).set({ termContentHash: null });
    await sync(own());
    expect(await termsOf(id)).toEqual(["leak"]);
  });

  test("its content is deleted", async () => {
    await its.db.delete(documentContent);
    expect((await sync(own())).result.done).toBe(1);
    expect(await termsOf(id)).toEqual([]);
    expect((await sync(own())).result).toEqual({ done: 0, skipped: 0, failed: 0 });
  });
});

test("links that users added stay", async () => {
  await addTerms("leak", "export");
  const id = await addDocument("a leak");
  const ids = (await its.db.select({ id: term.id }).from(term)).map(({ id }) => id);
  const given = ids.map((termId) => ({ documentId: id, termId, source: "Given" as const }));
  await its.db.insert(documentTerm).values(given);
  await sync(own());
  expect(await termsOf(id)).toEqual(["leak (Given)", "export (Given)"]);
});

describe("texts of other plugins", () => {
  test("are fetched, and written only if they changed; null means deleted", async () => {
    await addTerms("leak");
    const id = await addDocument(undefined, "wiki");
    let text: string | null = "a leak";
    const wiki = () => fakeDocument({ text: () => (text === null ? null : { text }) }, { slug: "wiki" });
    expect((await sync(wiki())).result).toEqual({ done: 1, skipped: 0, failed: 0 });
    expect(await termsOf(id)).toEqual(["leak"]);
    const { transactions } = its.sent;
    expect((await sync(wiki())).result).toEqual({ done: 0, skipped: 1, failed: 0 });
    expect(its.sent.transactions).toBe(transactions);
    text = null;
    expect((await sync(wiki())).result).toEqual({ done: 1, skipped: 0, failed: 0 });
    expect(await termsOf(id)).toEqual([]);
    expect((await sync(wiki())).result).toEqual({ done: 0, skipped: 1, failed: 0 });
  });

  test("stay unchanged while the plugin is not chosen, and are faults of their documents", async () => {
    await addTerms("leak");
    const id = await addDocument(undefined, "wiki");
    const { result, faults } = await sync(own());
    expect(result).toEqual({ done: 0, skipped: 0, failed: 1 });
    expect(faults).toEqual([
      { item: `document ${id}`, reason: "Its plugin wiki is no longer chosen: SVC_PLUGIN_DOCUMENT" },
    ]);
    expect(await termsOf(id)).toEqual([]);
  });

  test("that cannot be fetched are faults of their documents, and keep their terms", async () => {
    await addTerms("leak", "export");
    const [bad, good] = [await addDocument(undefined, "wiki"), await addDocument(undefined, "wiki")];
    const wiki = (broken: () => never | { text: string }) =>
      fakeDocument(
        { text: ({ document }) => (document.id === bad ? broken() : { text: "an export" }) },
        { slug: "wiki" },
      );
    await sync(wiki(() => ({ text: "a leak" })));
    const { result, faults } = await sync(wiki(() => ({ text: 7 }) as never));
    expect(result).toEqual({ done: 0, skipped: 1, failed: 1 });
    expect(faults).toEqual([
      {
        item: `document ${bad}`,
        reason: "wiki returned an invalid answer: the answer: Expected union value",
      },
    ]);
    expect([await termsOf(bad), await termsOf(good)]).toEqual([["leak"], ["export"]]);
  });

  test("of a plugin that hangs cost a few timeouts, not one per document", async () => {
    await addTerms("leak");
    for (let i = 0; i < 40; i += 1) await addDocument(undefined, "wiki");
    const last = await addDocument("a leak");
    const wiki = fakeDocument(
      { text: () => new Promise(() => {}) },
      { slug: "wiki", timeoutMilliseconds: 50 },
    );
    const { result, faults } = await sync(wiki, own());
    expect(result).toEqual({ done: 1, skipped: 0, failed: 40 });
    expect(await termsOf(last)).toEqual(["leak"]);
    expect(wiki.calls.length).toBeLessThan(10);
    expect(faults.map(({ reason }) => reason)).toContain(
      "wiki was not called again: it timed out 3 times in a row",
    );
  });
});

test("a link does not return if its term is deleted during the run", async () => {
  await addTerms("leak", "export");
  const id = await addDocument("a leak, an export");
  const deleting = await its.run(documentTermSync, pluginsOf(own()), {
    transaction: async (work) => {
      await its.db.delete(term).where(eq(term.text, "leak"));
      return await its.db.transaction(work);
    },
  });
  expect(deleting.result.done).toBe(1);
  expect(await termsOf(id)).toEqual(["export"]);
});

test("a text that changes while it is read is read again", async () => {
  await addTerms("leak", "export");
  const id = await addDocument("a leak");
  await its.run(documentTermSync, pluginsOf(own()), {
    transaction: async (work) => {
      await write(id, "an export");
      return await its.db.transaction(work);
    },
  });
  const due = sql`term_content_hash is null or term_content_hash <> content_hash`;
  expect(await its.db.$count(document, and(eq(document.id, id), due))).toBe(1);
  await sync(own());
  expect(await termsOf(id)).toEqual(["export"]);
});

test("two concurrent runs create each link once", async () => {
  await addTerms(...vector);
  const ids = await Promise.all(Array.from({ length: 60 }, () => addDocument(sentence)));
  await Promise.all([sync(own()), sync(own()), sync(own())]);
  for (const id of ids) expect(await termsOf(id)).toEqual(vector);
});

test("10,000 terms and 1,000 documents need one vocabulary and a few statements", async () => {
  await addTerms(...vector);
  await its.db.execute(sql`
    insert into term (text, created_at, updated_at) select 'word' || n || ' of many', now(), now()
    from generate_series(1, 9995) n`);
  await its.db.execute(sql`
    insert into document (name, resource_type, plugin_slug, resource_id, created_at, updated_at)
    select 'Notes', 'reference', 'markdown', n, now(), now() from generate_series(1, 1000) n`);
  await its.db.execute(sql`
    insert into document_content (document_id, content, hash, updated_at)
    select id, text, sha256(convert_to(text, 'UTF8')), now() from (
      select id, ${sentence} || repeat(' word' || id % 1000 || ' of many words that say nothing', 100) as text
      from document) texts`);
  const before = its.sent.statements;
  expect((await sync(own())).result).toEqual({ done: 1000, skipped: 0, failed: 0 });
  expect(its.sent.statements - before).toBe(1 + 3 + 20);
  expect(await its.db.$count(documentTerm)).toBe(5 * 1000 + 999);
});

test("documents that are newer than the statistics are not read again for each page", async () => {
  const insert = (count: number) =>
    its.db.execute(sql`
      with made as (
        insert into document (name, resource_type, plugin_slug, resource_id, created_at, updated_at)
        select 'Notes', 'reference', 'markdown', gen_random_uuid(), now(), now()
        from generate_series(1, ${count}::int) returning id)
      insert into document_content (document_id, content, hash, updated_at)
      select id, 'Text ' || id, sha256(id::text::bytea), now() from made`);
  await insert(1000);
  await its.db.execute(sql`analyze document, document_content`);
  await insert(7000);
  const asked = noteAsked(its.db);
  expect((await sync(own())).result.done).toBe(8000);
  const pages = asked.filter(({ text }) => /^select .*"term_vocabulary" from "document"/.test(text));
  expect(pages.length).toBeGreaterThan(10);
  await its.db.update(document).set({ termVocabulary: null });
  for (const page of pages) expect(await rowsRead(its.db, page)).toBeLessThan(5000);
});

test("a document that cannot be written does not affect the others", async () => {
  await addTerms("leak");
  const ids: number[] = [];
  for (let i = 0; i < 10; i += 1) ids.push(await addDocument("a leak"));
  const bad = ids[6]!;
  await using _ = await refuseRows(its.db, "document", `new.id = ${bad}`);
  expect(await sync(own())).toEqual({
    result: { done: 9, skipped: 0, failed: 1 },
    faults: [{ item: `document ${bad}`, reason: "Unexpected error; see the worker's log" }],
  });
  for (const id of ids) expect(await termsOf(id)).toEqual(id === bad ? [] : ["leak"]);
});
