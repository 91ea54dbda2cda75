import { afterAll, beforeAll, expect, test } from "bun:test";
import { document, documentTerm, term } from "../../drizzle/schema/index.ts";
import { insertIncident } from "../../tests/support/incident.ts";
import { type PluginTest, startPluginTest } from "../../tests/support/plugins.ts";
import { callPlugin } from "../plugin/call.ts";

let its: PluginTest;
beforeAll(async () => {
  its = await startPluginTest();
});
afterAll(() => its[Symbol.asyncDispose]());

test("a document with more reasons than an answer may give is proposed with the first of them", async () => {
  const { db, clock } = its.context;
  const at = clock.now();
  const stamps = { createdAt: at, updatedAt: at };
  const { incidentId } = await insertIncident(db, at);
  const [glossary] = await db
    .insert(document)
    .values({ name: "Glossary", resourceType: "reference", ...stamps })
    .returning({ id: document.id });
  const { id } = glossary!;
  const made = await db
    .insert(term)
    .values(Array.from({ length: 60 }, (_, i) => ({ text: `word${i}`, ...stamps })))
    .returning({ id: term.id, text: term.text });
  const terms = made.sort((a, b) => a.id - b.id);
  const links = terms.map(({ id: termId }) => ({ documentId: id, termId, source: "Found" as const }));
  await db.insert(documentTerm).values(links);
  const incident = { ...(await its.factsOf(incidentId)), terms };
  const matched = await callPlugin(its.plugins.ofType("document-resolver")[0]!, "resolve", { incident });
  const reasons = terms.slice(0, 50).map((one) => ({ kind: "term" as const, id: one.id, name: one.text }));
  expect(matched).toEqual({ ok: true, value: [{ document: { id }, reasons }] });
});
