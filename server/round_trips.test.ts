import { afterAll, beforeAll, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { incident } from "../drizzle/schema/index.ts";
import { openSpoiltWay, type SpoiltWay } from "../tests/support/database/spoilt_way.ts";
import { insertIncident } from "../tests/support/domain/incident.ts";
import { insertEmptyIncident } from "../tests/support/http/participants.ts";
import { type Person, personOf } from "../tests/support/http/people.ts";
import { startTestServer, type TestServer } from "../tests/support/http/server.ts";

let server: TestServer;
/** The server whose round trips are counted. */
let counted: TestServer;
let way: SpoiltWay;
let member: Person;
let paths: Record<string, string>;
beforeAll(async () => {
  server = await startTestServer();
  way = await openSpoiltWay(server.databaseUrl);
  counted = await server.another({ databaseUrl: way.url });
  member = await personOf(counted, "carol@example.com");
  const at = server.clock.now();
  const ids = await insertIncident(server.db, at);
  const { incidentId, documentId } = ids;
  await insertEmptyIncident(server.db, ids, at);
  const hidden = await insertEmptyIncident(server.db, ids, at);
  await server.db.update(incident).set({ visibility: "Restricted" }).where(eq(incident.id, hidden));
  const next = await member.call("GET", "/incidents/?limit=1");
  paths = {
    "an incident": `/incidents/${incidentId}`,
    "an incident by its name": `/incidents/${(await member.call("GET", `/incidents/${incidentId}`)).body.name}`,
    "a hidden incident": `/incidents/${hidden}`,
    "an unknown incident": "/incidents/999999",
    incidents: "/incidents/",
    "incidents by filters": `/incidents/?status=Active&incident_type_id=${ids.incidentTypeId}&participant=carol@example.com`,
    "incidents by words": "/incidents/?q=disk",
    "the next page": `/incidents/?limit=1&cursor=${next.body.next_cursor}`,
    "a document": `/documents/${documentId}`,
    documents: "/documents/",
    "an incident's documents": `/documents/?incident_id=${incidentId}`,
  };
});
afterAll(async () => {
  way.close();
  await counted[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

test.each([
  ["an incident", 200],
  ["an incident by its name", 200],
  ["a hidden incident", 404],
  ["an unknown incident", 404],
  ["incidents", 200],
  ["incidents by filters", 200],
  ["incidents by words", 200],
  ["the next page", 200],
  ["a document", 200],
  ["documents", 200],
  ["an incident's documents", 200],
])("with a known token, GET of %s takes one round trip to PostgreSQL", async (what, http) => {
  const read = async () => {
    const before = way.roundTrips();
    expect(await member.call("GET", paths[what]!)).toMatchObject({ http });
    return way.roundTrips() - before;
  };
  // Each connection prepares a statement once.
  await read();
  const trips: number[] = [];
  for (let i = 0; i < 5; i += 1) trips.push(await read());
  // Others use the connections, too: the listener, and the server's own work.
  expect(Math.min(...trips)).toBe(1);
});
