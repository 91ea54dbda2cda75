import { expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { document, incident, participant } from "../../drizzle/schema/index.ts";
import { startTestServer } from "../../tests/support/http/server.ts";
import { insertTwoIncidents } from "../../tests/support/http/task.ts";

// docs/permissions.md lists who may do what with documents.

test("a document is hidden once its incident becomes Restricted, and shown to those who join", async () => {
  await using server = await startTestServer();
  const { people, incidents, ids } = await insertTwoIncidents(server);
  const at = server.clock.now();
  const [row] = await server.db
    .insert(document)
    .values({
      name: "Confidential",
      resourceType: "reference",
      incidentId: incidents.Open,
      createdAt: at,
      updatedAt: at,
    })
    .returning();
  const get = async (who: string) => (await people[who]!.call("GET", `/documents/${row!.id}`)).http;
  expect(await get("member")).toBe(200);
  await server.db.update(incident).set({ visibility: "Restricted" }).where(eq(incident.id, incidents.Open));
  expect([await get("member"), await get("participant")]).toEqual([404, 404]);
  await server.db
    .insert(participant)
    .values({ incidentId: incidents.Open, individualId: ids.alice, joinedAt: at });
  expect([await get("member"), await get("participant")]).toEqual([404, 200]);
});
