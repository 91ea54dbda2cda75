import { expect, test } from "bun:test";
import { asc, eq } from "drizzle-orm";
import { event, individual } from "../../drizzle/schema/index.ts";
import { type IncidentServer, useIncidentServer } from "../../tests/support/http/incident_server.ts";
import { personOf } from "../../tests/support/http/people.ts";

let { server, member, ids } = {} as IncidentServer;
useIncidentServer((given) => {
  ({ server, member, ids } = given);
});

const report = (values: object, headers?: Record<string, string>) =>
  member.call(
    "POST",
    "/incidents/",
    {
      title: "Disk full",
      incident_type_id: ids.incidentTypeId,
      incident_priority_id: ids.incidentPriorityId,
      ...values,
    },
    headers,
  );
type Held = { individual: { email: string }; roles: { role: string }[] };
const rolesOf = async (id: number) => {
  const { body } = await member.call("GET", `/incidents/${id}/participants/?sort=id`);
  return body.items.map(({ individual, roles }: Held) => [
    individual.email,
    ...roles.map(({ role }) => role),
  ]);
};

test("a title, a type and a priority are enough for a report", async () => {
  expect(await report({})).toMatchObject({ http: 201, body: { title: "Disk full", description: "" } });
});

test("a report names the commander and the participants, in the same transaction", async () => {
  const { http, body } = await report({ commander: "dana", participants: ["erin@example.com", "dana"] });
  expect([http, body.commander.email]).toEqual([201, "dana@example.com"]);
  expect(await rolesOf(body.id)).toEqual([
    ["carol@example.com", "reporter"],
    ["erin@example.com", "participant"],
    ["dana@example.com", "participant", "commander"],
  ]);
  const events = await server.db
    .select({ kind: event.kind, actor: event.actor })
    .from(event)
    .where(eq(event.incidentId, body.id))
    .orderBy(asc(event.id));
  expect(events.slice(0, 3).map(({ kind }) => kind)).toEqual([
    "incident.reported",
    "participant.joined",
    "role.assumed",
  ]);
  expect(events.filter(({ kind }) => kind === "role.assumed").map(({ actor }) => actor)).toEqual(
    Array(3).fill("carol@example.com"),
  );
});

test("the step that looks for a commander leaves the named one", async () => {
  const { body } = await report({ commander: "frank@example.com" });
  const { body: now } = await member.call("GET", `/incidents/${body.id}`);
  expect(now.commander.email).toBe("frank@example.com");
  expect(now.steps).toContainEqual(expect.objectContaining({ step: "reported:commander", state: "Done" }));
});

test("reporters may command, and need not be named", async () => {
  const { body } = await report({ commander: "carol", participants: ["carol@example.com"] });
  expect(await rolesOf(body.id)).toEqual([["carol@example.com", "reporter", "commander"]]);
});

test("a participant may read the Restricted incident that names them", async () => {
  const heidi = await personOf(server, "heidi@example.com");
  const { body } = await report({ visibility: "Restricted", participants: ["heidi@example.com"] });
  expect((await heidi.call("GET", `/incidents/${body.id}`)).http).toBe(200);
  const other = await personOf(server, "ivan@example.com");
  expect((await other.call("GET", `/incidents/${body.id}`)).http).toBe(404);
});

test("a person whom the reporter may not know of looks like a new one", async () => {
  const at = new Date(0);
  const hidden = { name: "The Secret Agent", email: "agent@example.com", listed: false };
  await server.db.insert(individual).values({ ...hidden, createdAt: at, updatedAt: at });
  const { body } = await report({ commander: "agent@example.com" });
  expect(body.commander.name).toBe("agent");
});

test("with an invalid participant, nobody new becomes known", async () => {
  expect((await report({ participants: ["new@example.com", "a b@c"] })).http).toBe(400);
  expect((await report({ participants: ["new@example.com"], incident_type_id: 4711 })).http).toBe(400);
  expect(await server.db.select().from(individual).where(eq(individual.email, "new@example.com"))).toEqual(
    [],
  );
});

test("reports at the same time, with the same new people in another order, do not deadlock", async () => {
  const people = Array.from({ length: 12 }, (_, at) => `new${at}@example.com`);
  const orders = Array.from({ length: 16 }, (_, at) => (at % 2 ? people : people.toReversed()));
  const answers = await Promise.all(orders.map((participants) => report({ participants })));
  expect(answers.map(({ http }) => http)).toEqual(orders.map(() => 201));
});
