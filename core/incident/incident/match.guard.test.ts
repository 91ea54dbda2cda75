import { afterAll, beforeAll, expect, test } from "bun:test";
import { isNull, sql } from "drizzle-orm";
import type { PgTable } from "drizzle-orm/pg-core";
import {
  document,
  documentIncidentPriority,
  documentIncidentType,
  documentTerm,
  incidentPriority,
  term,
} from "../../../drizzle/schema/index.ts";
import { noteAsked, rowsRead } from "../../../tests/support/database/statements.ts";
import { type IncidentIds, insertIncident } from "../../../tests/support/domain/incident.ts";
import { type PluginTest, startPluginTest } from "../../../tests/support/domain/plugins.ts";
import { insertRow } from "../../../tests/support/http/catalog.ts";
import { callPlugin } from "../../plugin/call.ts";
import { matchIncident } from "./match.ts";

const links = {
  type: { owner: documentIncidentType.documentId, to: documentIncidentType.incidentTypeId },
  priority: { owner: documentIncidentPriority.documentId, to: documentIncidentPriority.incidentPriorityId },
  term: { owner: documentTerm.documentId, to: documentTerm.termId },
};
let its: PluginTest;
let ids: IncidentIds;
beforeAll(async () => {
  its = await startPluginTest();
  ids = await insertIncident(its.context.db, its.context.clock.now());
});
afterAll(() => its[Symbol.asyncDispose]());

test("a document with too many reasons is proposed with the first of them", async () => {
  const { db, clock } = its.context;
  const at = clock.now();
  const stamps = { createdAt: at, updatedAt: at };
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
  const found = terms.map(({ id: termId }) => ({ documentId: id, termId, source: "Found" as const }));
  await db.insert(documentTerm).values(found);
  const incident = { ...(await its.factsOf(ids.incidentId)), terms };
  const matched = await callPlugin(its.plugins.ofType("document-resolver")[0]!, "resolve", { incident });
  const reasons = terms.slice(0, 50).map((one) => ({ kind: "term" as const, id: one.id, name: one.text }));
  expect(matched).toEqual({ ok: true, value: [{ document: { id }, reasons }] });
});

/** Creates linked documents, by default without an incident. */
const crowd = (count: number, link: PgTable, to: number, incidentId: number | null = null) =>
  its.context.db.execute(sql`with made as (
      insert into ${document} (name, resource_type, incident_id, created_at, updated_at)
      select 'Notes', 'reference', ${incidentId}::bigint, now(), now() from generate_series(1, ${count}::int)
      returning id)
    insert into ${link} select id, ${to}::bigint from made`);

test("statistics from when all documents had an incident do not make it compare each with each link", async () => {
  const { db } = its.context;
  const { incidentPriorityId, incidentId } = ids;
  const other = await insertRow(db, incidentPriority, { name: "Other", reminderHours: 2 });
  await db.delete(documentTerm);
  await db.delete(document).where(isNull(document.incidentId));
  await crowd(1, documentIncidentPriority, other, incidentId);
  await db.execute(sql`analyze`);
  await crowd(1500, documentIncidentPriority, incidentPriorityId, incidentId);
  await crowd(4500, documentIncidentPriority, other, incidentId);
  await crowd(1500, documentIncidentPriority, other);
  await crowd(10, documentIncidentPriority, incidentPriorityId);
  const incident = await its.factsOf(incidentId);
  const asked = noteAsked(db);
  const matched = await callPlugin(its.plugins.ofType("document-resolver")[0]!, "resolve", { incident });
  expect(matched).toMatchObject({ ok: true, value: { length: 10 } });
  expect(await rowsRead(db, asked[0]!)).toBeLessThan(50_000);
  await db.delete(documentIncidentPriority);
  await db.delete(document).where(isNull(document.incidentId));
});

test("documents that cannot be proposed are not read, however many share a link", async () => {
  const { db } = its.context;
  const { incidentId, incidentTypeId } = ids;
  await crowd(20_000, documentIncidentType, incidentTypeId, incidentId);
  await crowd(10, documentIncidentType, incidentTypeId);
  await db.execute(sql`analyze`);
  const incident = await its.factsOf(incidentId);
  const asked = noteAsked(db);
  const matched = await callPlugin(its.plugins.ofType("document-resolver")[0]!, "resolve", { incident });
  expect(matched).toMatchObject({ ok: true, value: { length: 10 } });
  expect(await rowsRead(db, asked[0]!)).toBeLessThan(5000);
});

test("for links of thousands the oldest are read, and a rare link adds its record", async () => {
  const { db, clock } = its.context;
  const { incidentTypeId, incidentPriorityId } = ids;
  const facts = { ...(await its.factsOf(ids.incidentId)), terms: [] };
  // insertIncident's document is linked to everything.
  await db.delete(documentIncidentType);
  await crowd(10_001, documentIncidentType, incidentTypeId);
  await crowd(10_001, documentIncidentPriority, incidentPriorityId);
  const [word] = await db
    .insert(term)
    .values({ text: "rare", createdAt: clock.now(), updatedAt: clock.now() })
    .returning({ id: term.id });
  const newest = await insertRow(db, document, { name: "Runbook", resourceType: "reference" });
  await db.insert(documentIncidentType).values({ documentId: newest, incidentTypeId });
  await db.insert(documentIncidentPriority).values({ documentId: newest, incidentPriorityId });
  const matched = async (terms: { id: number; text: string }[]) => {
    const found = await matchIncident(its.context, { ...facts, terms }, links, { limit: 1 });
    return found.map(({ id, reasons }) => ({ id, kinds: reasons.map(({ kind }) => kind) }));
  };
  expect((await matched([]))[0]?.kinds).toHaveLength(1);
  await db.insert(documentTerm).values({ documentId: newest, termId: word!.id, source: "Given" });
  expect(await matched([{ id: word!.id, text: "rare" }])).toEqual([
    { id: newest, kinds: ["incident_type", "incident_priority", "term"] },
  ]);
});

test("the more terms an incident has, the fewer records of each are compared", async () => {
  const { db, clock } = its.context;
  const facts = await its.factsOf(ids.incidentId);
  const stamps = { createdAt: clock.now(), updatedAt: clock.now() };
  const terms = await db
    .insert(term)
    .values(Array.from({ length: 498 }, (_, i) => ({ text: `many${i}`, ...stamps })))
    .returning({ id: term.id, text: term.text });
  await db.execute(sql`insert into ${documentTerm} (document_id, term_id, source)
    select d.id, t.id, 'Given' from (select id from ${document} order by id limit 60) as d
      cross join (select id from ${term} where text like 'many%') as t`);
  const none = { id: 0, name: "none" };
  const incident = {
    ...facts,
    type: { ...facts.type, ...none },
    priority: { ...facts.priority, ...none },
    terms,
  };
  expect(await matchIncident(its.context, incident, links, { limit: 60 })).toHaveLength(20_000 / 500);
});
