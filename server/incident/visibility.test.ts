import { afterAll, beforeAll, expect, test } from "bun:test";
import { incident, participant, participantRole } from "../../drizzle/schema/index.ts";
import { insertIncident } from "../../tests/support/domain/incident.ts";
import { type Person, personOf } from "../../tests/support/http/people.ts";
import { startTestServer, type TestServer } from "../../tests/support/http/server.ts";

// docs/permissions.md lists who may do what with incidents.

type Place = "Open" | "Restricted";

let server: TestServer;
let ids: Awaited<ReturnType<typeof insertIncident>>;
const people: Record<string, Person> = {};

beforeAll(async () => {
  server = await startTestServer();
  ids = await insertIncident(server.db, server.clock.now());
  people.member = await personOf(server, "carol@example.com", ["oncall"]);
  people.former = await personOf(server, "bob@example.com");
  people.participant = await personOf(server, "alice@example.com");
});
afterAll(() => server[Symbol.asyncDispose]());

const texts = { title: "Confidential", description: "zebra" };
const kind = () => ({
  incident_type_id: ids.incidentTypeId,
  incident_priority_id: ids.incidentPriorityId,
});
const whole = (visibility: Place) => ({
  ...texts,
  ...kind(),
  visibility,
  status: "Active",
  resolution: null,
  version: 1,
});

/** Alice participates and commands; Bob has left. */
async function newIncident(visibility: Place): Promise<number> {
  const at = server.clock.now();
  const { incidentTypeId, incidentPriorityId, alice, bob } = ids;
  const stamps = { reportedAt: at, createdAt: at, updatedAt: at };
  const [row] = await server.db
    .insert(incident)
    .values({ ...texts, visibility, incidentTypeId, incidentPriorityId, ...stamps })
    .returning();
  const incidentId = row!.id;
  const [commander] = await server.db
    .insert(participant)
    .values([
      { incidentId, individualId: alice, joinedAt: at },
      { incidentId, individualId: bob, joinedAt: at, leftAt: at },
    ])
    .returning();
  await server.db
    .insert(participantRole)
    .values({ participantId: commander!.id, incidentId, role: "commander", assumedAt: at });
  return incidentId;
}

test("an incident that becomes Restricted is hidden at once; those who join see it at once", async () => {
  const id = await newIncident("Open");
  const { member, participant: alice } = people as { member: Person; participant: Person };
  expect((await member.call("GET", `/incidents/${id}`)).http).toBe(200);
  expect((await alice.call("PUT", `/incidents/${id}`, whole("Restricted"))).http).toBe(200);
  expect((await member.call("GET", `/incidents/${id}`)).http).toBe(404);
  // Carol became an individual with her first report.
  const { body } = await member.call("POST", "/incidents/", { ...texts, ...kind() });
  const carol = (await member.call("GET", `/incidents/${body.id}`)).body.reporter.id;
  await server.db
    .insert(participant)
    .values({ incidentId: id, individualId: carol, joinedAt: server.clock.now() });
  expect((await member.call("GET", `/incidents/${id}`)).http).toBe(200);
});
