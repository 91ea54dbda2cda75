import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { and, eq } from "drizzle-orm";
import { conversation, incident, participant, participantRole } from "../drizzle/schema/index.ts";
import { insertIncident } from "../tests/support/domain/incident.ts";
import { type Person, personOf } from "../tests/support/http/people.ts";
import { startTestServer, type TestServer } from "../tests/support/http/server.ts";

let server: TestServer;
let alice: Person;
/** Restricted, with alice as a participant. */
let incidentId: number;
let participantId: number;
let count = 0;
let key: string;
let name: string;
beforeAll(async () => {
  server = await startTestServer();
  alice = await personOf(server, "alice@example.com");
  const at = server.clock.now();
  const ids = await insertIncident(server.db, at);
  incidentId = ids.incidentId;
  await server.db.update(incident).set({ visibility: "Restricted" }).where(eq(incident.id, incidentId));
  await server.db
    .insert(conversation)
    .values({ incidentId, pluginSlug: "channel", createdAt: at })
    .onConflictDoNothing();
  const ofAlice = and(eq(participant.incidentId, incidentId), eq(participant.individualId, ids.alice));
  const [row] = await server.db.select({ id: participant.id }).from(participant).where(ofAlice);
  participantId = row!.id;
});
afterAll(() => server[Symbol.asyncDispose]());
beforeEach(async () => {
  count += 1;
  key = `key-${count}`;
  name = `Name ${count}`;
  await server.db.update(participant).set({ leftAt: null }).where(eq(participant.id, participantId));
});

describe("a stored answer is withheld from users who may no longer read it", () => {
  const leave = () =>
    server.db
      .update(participant)
      .set({ leftAt: server.clock.now() })
      .where(eq(participant.id, participantId));

  const posts: [string, () => [string, object]][] = [
    ["a document", () => ["/documents/", { name, resource_type: "reference", incident_id: incidentId }]],
    ["a task", () => ["/tasks/", { description: name, incident_id: incidentId }]],
    ["a report", () => [`/incidents/${incidentId}/reports/`, { conditions: name, actions: "", needs: "" }]],
    ["a note", () => [`/incidents/${incidentId}/events/`, { description: name }]],
    ["a message", () => [`/incidents/${incidentId}/messages/`, { text: name }]],
    ["a participant", () => [`/incidents/${incidentId}/participants/`, { email: `p${count}@example.com` }]],
    ["a retry", () => [`/incidents/${incidentId}/retry`, {}]],
  ];
  test.each(posts)("%s", async (_, of) => {
    const [path, body] = of();
    const send = () => alice.call("POST", path, body, { "idempotency-key": key });
    const first = await send();
    expect([200, 201]).toContain(first.http);
    expect((await send()).http).toBe(first.http);
    await leave();
    const again = await send();
    expect([again.http, again.body.detail]).toEqual([404, "There is no such incident"]);
    expect(JSON.stringify(again.body)).not.toContain(name);
  });

  test("an incident they reported and then left", async () => {
    const [row] = await server.db.select().from(incident).where(eq(incident.id, incidentId));
    const { incidentTypeId: incident_type_id, incidentPriorityId: incident_priority_id } = row!;
    const body = {
      title: name,
      description: "",
      visibility: "Restricted",
      incident_type_id,
      incident_priority_id,
    };
    const send = () => alice.call("POST", "/incidents/", body, { "idempotency-key": key });
    const { body: made } = await send();
    await server.db
      .update(participant)
      .set({ leftAt: server.clock.now() })
      .where(eq(participant.incidentId, made.id));
    expect((await send()).http).toBe(404);
  });

  test("their own participation", async () => {
    const path = `/incidents/${incidentId}/participants/${participantId}/roles`;
    const send = () => alice.call("POST", path, { role: "liaison" }, { "idempotency-key": key });
    expect((await send()).http).toBe(201);
    expect((await send()).http).toBe(201);
    await leave();
    expect((await send()).http).toBe(404);
  });

  test("but leaving again returns the stored answer", async () => {
    await server.db.delete(participantRole).where(eq(participantRole.participantId, participantId));
    const send = () =>
      alice.call(
        "POST",
        `/incidents/${incidentId}/participants/${participantId}/leave`,
        {},
        { "idempotency-key": key },
      );
    const first = await send();
    expect(first.http).toBe(200);
    expect(await send()).toMatchObject({ http: 200, body: first.body });
  });
});
