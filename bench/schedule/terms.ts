import { sql } from "drizzle-orm";
import { readVocabulary } from "../../core/catalog/search_words/vocabulary.ts";
import { type Database, openDatabase } from "../../drizzle/client.ts";
import { document, documentContent, documentTerm, term } from "../../drizzle/schema/index.ts";
import { sha256 } from "../../platform/secret.ts";
import { fakeDocument } from "../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../plugins/fake/plugins.ts";
import { TestClock } from "../../tests/support/clock.ts";
import { documentTermSync } from "../../worker/tasks/document-term-sync.ts";
import { vocabulary as words, writerOf } from "../api/words.ts";
import * as support from "../support.ts";
import { contextOf, secondsOf } from "./context.ts";

const size = { terms: 10_000, documents: 1000, words: 400 };
const rounds = 3;
/** The loop reads only this many documents, because each takes the same time. */
const sample = 20;

/** Compares the whole task on locally stored texts with a loop over single terms. */
export async function measureTerms(url: string): Promise<void> {
  const { db, close } = openDatabase(url, 2);
  const clock = new TestClock();
  const [terms, texts] = await fill(db, clock);
  const reads: number[] = [];
  // Building the vocabulary is the only code that reads the terms.
  const counting = new Proxy(db, {
    get: (target, name) => {
      if (name !== "select") return Reflect.get(target, name);
      return (fields: Record<string, unknown>) => {
        if (fields.text === term.text) reads.push(1);
        return target.select(fields as Parameters<typeof target.select>[0]);
      };
    },
  });
  const build = await secondsOf(() => readVocabulary(db));
  const context = contextOf(counting, clock, pluginsOf(fakeDocument({}, { slug: "markdown" })));
  const times: number[] = [];
  for (let round = 0; round <= rounds; round += 1) {
    await db.execute(sql`update ${document} set term_vocabulary = null, term_content_hash = null`);
    await db.delete(documentTerm);
    const seconds = await secondsOf(() => documentTermSync.run(context));
    if (round > 0) times.push(seconds);
  }
  const found = await db.$count(documentTerm);
  const again = await secondsOf(() => documentTermSync.run(context));
  await close();
  const builds = reads.length / (rounds + 2);
  const loop =
    ((await secondsOf(async () => oneByOne(terms, texts.slice(0, sample)))) / sample) * texts.length;
  const our = support.median(times);
  const number = (value: number) => value.toLocaleString("en");
  console.log(
    `\nterms          ${our.toFixed(2)} s for ${number(size.terms)} terms in ${number(size.documents)} documents of ${size.words} words: ${number(found)} found; median of ${rounds}`,
  );
  console.log(
    `${"".padEnd(15)}${(build * 1000).toFixed(0)} ms of it to build the vocabulary; ${(again * 1000).toFixed(0)} ms when nothing has changed`,
  );
  console.log(
    `${"".padEnd(15)}${loop.toFixed(0)} s by a regular expression for each term (${sample} documents, times ${size.documents / sample}), ${(loop / our).toFixed(0)} times as long`,
  );
  console.log(`${"".padEnd(15)}${builds} built in a run   aim: 1, ${support.verdict(builds === 1)}`);
}

async function fill(db: Database, clock: TestClock): Promise<[string[], string[]]> {
  const stamps = { createdAt: clock.now(), updatedAt: clock.now() };
  // Half of the terms are one word and half are two, as in practice.
  const terms = Array.from({ length: size.terms }, (_, at) =>
    at % 2 === 0 ? words[at]! : `${words[at % 150]} ${words[at >> 2]}`,
  );
  const writer = writerOf("terms");
  const texts = Array.from({ length: size.documents }, () => writer.text(size.words));
  const kinds = { resourceType: "reference", pluginSlug: "markdown" };
  for (let at = 0; at < terms.length; at += 1000)
    await db
      .insert(term)
      .values(terms.slice(at, at + 1000).map((text) => ({ text, ...stamps })))
      .onConflictDoNothing();
  for (const [at, content] of texts.entries()) {
    const [row] = await db
      .insert(document)
      .values({ name: `Document ${at}`, resourceId: String(at), ...kinds, ...stamps })
      .returning({ id: document.id });
    const hash = sha256(content);
    await db.insert(documentContent).values({ documentId: row!.id, content, hash, updatedAt: clock.now() });
  }
  await db.execute(sql`vacuum analyze`);
  return [terms, texts];
}

function oneByOne(terms: readonly string[], texts: readonly string[]): number {
  const patterns = terms.map((text) => new RegExp(`\\b${text}\\b`, "iu"));
  return texts.reduce((sum, text) => sum + patterns.filter((pattern) => pattern.test(text)).length, 0);
}
