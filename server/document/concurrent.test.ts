import { afterAll, beforeAll, expect, test } from "bun:test";
import { and, eq } from "drizzle-orm";
import type { Transaction } from "../../drizzle/client.ts";
import { document, documentTerm, task, term } from "../../drizzle/schema/index.ts";
import { inTheWay } from "../../tests/support/database/blocked.ts";
import { type IncidentIds, insertIncident } from "../../tests/support/domain/incident.ts";
import { insertEmptyIncident } from "../../tests/support/http/participants.ts";
import { type ApiAnswer, type Person, personOf } from "../../tests/support/http/people.ts";
import { startTestServer, type TestServer } from "../../tests/support/http/server.ts";
import { insertTask } from "../../tests/support/http/task.ts";

let server: TestServer;
let admin: Person;
let ids: IncidentIds;
beforeAll(async () => {
  server = await startTestServer();
  admin = await personOf(server, "root@example.com", ["admin"]);
  ids = await insertIncident(server.db, server.clock.now());
});
afterAll(() => server[Symbol.asyncDispose]());

async function insertDocument(incidentId: number | null = null): Promise<number> {
  const at = server.clock.now();
  const values = { name: "Runbook", resourceType: "reference", incidentId, createdAt: at, updatedAt: at };
  const [row] = await server.db.insert(document).values(values).returning();
  return row!.id;
}

/** Returns the statuses of both calls; `hold` blocks them until both wait. */
async function held(
  hold: (tx: Transaction) => PromiseLike<unknown>,
  ...calls: (() => Promise<ApiAnswer>)[]
): Promise<unknown[]> {
  const answers = await inTheWay(server.db, hold, ...calls);
  return answers.map((ended) => (ended.status === "fulfilled" ? ended.value.http : ended.reason));
}

test("deleting a document and its incident concurrently causes no deadlock", async () => {
  const incidentId = await insertEmptyIncident(server.db, ids, server.clock.now());
  const id = await insertDocument(incidentId);
  const answers = await held(
    (tx) => tx.select().from(document).where(eq(document.id, id)).for("update"),
    () => admin.call("DELETE", `/documents/${id}`),
    () => admin.call("DELETE", `/incidents/${incidentId}`),
  );
  expect(answers).toEqual([204, 204]);
});

test("nor does deleting a task and its incident", async () => {
  const incidentId = await insertEmptyIncident(server.db, ids, server.clock.now());
  const id = await insertTask(server, { incidentId });
  const answers = await held(
    (tx) => tx.select().from(task).where(eq(task.id, id)).for("update"),
    () => admin.call("DELETE", `/tasks/${id}`),
    () => admin.call("DELETE", `/incidents/${incidentId}`),
  );
  expect(answers).toEqual([204, 204]);
});

test("nor does deleting a term while it is added to a document", async () => {
  const id = await insertDocument();
  const at = server.clock.now();
  const [row] = await server.db
    .insert(term)
    .values({ text: "outage", createdAt: at, updatedAt: at })
    .returning();
  const termId = row!.id;
  await server.db.insert(documentTerm).values({ documentId: id, termId, source: "Found" });
  const { documentId, termId: of } = documentTerm;
  const written = { name: "Runbook", description: "", resource_type: "reference", weblink: null };
  const answers = await held(
    (tx) =>
      tx
        .select()
        .from(documentTerm)
        .where(and(eq(documentId, id), eq(of, termId)))
        .for("update"),
    () => admin.call("DELETE", `/terms/${termId}`),
    () => admin.call("PUT", `/documents/${id}`, { ...written, version: 1, term_ids: [termId] }),
  );
  expect(answers).toEqual([204, 400]);
});
