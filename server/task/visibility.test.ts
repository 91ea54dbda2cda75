import { expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { incident } from "../../drizzle/schema/index.ts";
import { startTestServer } from "../../tests/support/http/server.ts";
import { insertTask, insertTwoIncidents } from "../../tests/support/http/task.ts";

// docs/permissions.md lists who may do what with tasks.

test("the tasks of an incident are hidden as soon as it becomes Restricted", async () => {
  await using server = await startTestServer();
  const { people, incidents } = await insertTwoIncidents(server);
  const id = await insertTask(server, { incidentId: incidents.Open });
  expect((await people.member!.call("GET", `/tasks/${id}`)).http).toBe(200);
  await server.db.update(incident).set({ visibility: "Restricted" }).where(eq(incident.id, incidents.Open));
  expect((await people.member!.call("GET", `/tasks/${id}`)).http).toBe(404);
});
