import { afterAll, beforeAll, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { callPlugin } from "../../core/plugin/call.ts";
import type { IncidentFacts } from "../../core/plugin.ts";
import {
  document,
  documentIncidentPriority,
  documentIncidentType,
  documentTerm,
  incident,
  term,
} from "../../drizzle/schema/index.ts";
import { type IncidentIds, insertIncident } from "../../tests/support/domain/incident.ts";
import { type PluginTest, startPluginTest } from "../../tests/support/domain/plugins.ts";

let its: PluginTest;
let ids: IncidentIds;
let facts: IncidentFacts;
beforeAll(async () => {
  its = await startPluginTest();
  const { db, clock } = its.context;
  ids = await insertIncident(db, clock.now());
  await db.update(incident).set({ description: "data loss" }).where(eq(incident.id, ids.incidentId));
  facts = await its.factsOf(ids.incidentId);
});
afterAll(() => its[Symbol.asyncDispose]());

async function newDocument(by: { type?: boolean; priority?: boolean; termId?: number }, incidentId?: number) {
  const { db, clock } = its.context;
  const at = clock.now();
  const [row] = await db
    .insert(document)
    .values({ name: "Runbook", resourceType: "reference", incidentId, createdAt: at, updatedAt: at })
    .returning();
  const documentId = row!.id;
  const { incidentTypeId, incidentPriorityId } = ids;
  if (by.type) await db.insert(documentIncidentType).values({ documentId, incidentTypeId });
  if (by.priority) await db.insert(documentIncidentPriority).values({ documentId, incidentPriorityId });
  if (by.termId) await db.insert(documentTerm).values({ documentId, termId: by.termId, source: "Found" });
  return documentId;
}

async function resolve() {
  const outcome = await callPlugin(its.plugins.ofType("document-resolver")[0]!, "resolve", {
    incident: facts,
  });
  if (!outcome.ok) throw new Error(outcome.detail);
  return outcome.value.map((one) => ({
    id: "id" in one.document ? one.document.id : 0,
    reasons: one.reasons,
  }));
}

test("proposes documents by type, priority and term, those with the most reasons first", async () => {
  const { db, clock } = its.context;
  const stamps = { createdAt: clock.now(), updatedAt: clock.now() };
  const [other] = await db
    .insert(term)
    .values({ text: "queue", ...stamps })
    .returning();
  const one = await newDocument({ priority: true });
  const three = await newDocument({ type: true, priority: true, termId: ids.termId });
  const two = await newDocument({ type: true, termId: ids.termId });
  await newDocument({ termId: other!.id });
  await newDocument({});
  const type = { kind: "incident_type", id: ids.incidentTypeId, name: "Outage" } as const;
  const priority = { kind: "incident_priority", id: ids.incidentPriorityId, name: "Urgent" } as const;
  const loss = { kind: "term", id: ids.termId, name: "data loss" } as const;
  expect(await resolve()).toEqual([
    { id: three, reasons: [type, priority, loss] },
    { id: two, reasons: [type, loss] },
    { id: one, reasons: [priority] },
  ]);
});

test("proposes no document of any incident, including this one", async () => {
  // The document of insertIncident is linked to everything.
  expect((await resolve()).map(({ id }) => id)).not.toContain(ids.documentId);
  const hidden = await newDocument({ type: true }, ids.incidentId);
  await its.context.db.update(incident).set({ visibility: "Restricted" });
  expect((await resolve()).map(({ id }) => id)).not.toContain(hidden);
});

test("proposes the best fifty at most", async () => {
  for (let count = 0; count < 55; count += 1) await newDocument({ type: true });
  const best = await newDocument({ type: true, priority: true });
  const resolved = await resolve();
  expect(resolved).toHaveLength(50);
  expect(resolved.map(({ id }) => id)).toContain(best);
});
