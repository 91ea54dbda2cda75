import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { and, count, eq, like } from "drizzle-orm";
import {
  auditLog,
  event,
  incident,
  incidentType,
  individual,
  participant,
  participantRole,
} from "../../drizzle/schema/index.ts";
import { somebodyWaits } from "../../tests/support/database/blocked.ts";
import { type IncidentIds, insertIncident } from "../../tests/support/domain/incident.ts";
import { type ApiAnswer, type Person, personOf } from "../../tests/support/http/people.ts";
import { startTestServer, type TestServer } from "../../tests/support/http/server.ts";

let server: TestServer;
let admin: Person;
let member: Person;
let ids: IncidentIds;
let outage: { title: string; description: string; incident_type_id: number; incident_priority_id: number };
beforeAll(async () => {
  server = await startTestServer();
  admin = await personOf(server, "root@example.com", ["admin"]);
  member = await personOf(server, "carol@example.com");
  ids = await insertIncident(server.db, server.clock.now());
  outage = {
    title: "Disk full",
    description: "No space left",
    incident_type_id: ids.incidentTypeId,
    incident_priority_id: ids.incidentPriorityId,
  };
});
afterAll(() => server[Symbol.asyncDispose]());

async function reported(values: object = {}): Promise<number> {
  const { http, body } = await member.call("POST", "/incidents/", { ...outage, ...values });
  expect([http, body]).toMatchObject([201, {}]);
  return body.id;
}

/** The timeline's events about the incident itself. */
const told = (incidentId: number) =>
  server.db
    .select()
    .from(event)
    .where(and(eq(event.incidentId, incidentId), like(event.kind, "incident.%")))
    .orderBy(event.id);

const auditOf = (id: number) =>
  server.db
    .select()
    .from(auditLog)
    .where(and(eq(auditLog.subject, String(id)), eq(auditLog.action, "incident.deleted")));

describe("POST /incidents/", () => {
  test("answers 201 with the incident, its Location and its version", async () => {
    const { http, body, headers } = await member.call("POST", "/incidents/", outage);
    expect(http).toBe(201);
    const at = server.clock.now().toISOString();
    expect(body).toEqual({
      id: expect.any(Number),
      name: expect.stringMatching(/^INC-\d+$/),
      ...outage,
      status: "Active",
      visibility: "Open",
      resolution: null,
      cost: 0,
      commander: null,
      version: 1,
      incident_type: { id: ids.incidentTypeId, name: "Outage" },
      incident_priority: { id: ids.incidentPriorityId, name: "Urgent" },
      reported_at: at,
      stable_at: null,
      closed_at: null,
      impact_started_at: null,
      impact_ended_at: null,
      created_at: at,
      updated_at: at,
    });
    expect(headers.get("location")).toBe(`/incidents/${body.id}`);
    expect(headers.get("etag")).toBe('"1"');
    // A step after the report finds the commander.
    const { body: now } = await member.call("GET", headers.get("location")!);
    expect(now).toMatchObject({ ...body, commander: { email: "carol@example.com" } });
  });

  test("makes the reporter a participant, and starts the timeline", async () => {
    const dave = await personOf(server, "dave@example.com");
    const { body } = await dave.call("POST", "/incidents/", outage);
    const people = await server.db
      .select({ email: individual.email, role: participantRole.role, leftAt: participant.leftAt })
      .from(participantRole)
      .innerJoin(participant, eq(participant.id, participantRole.participantId))
      .innerJoin(individual, eq(individual.id, participant.individualId))
      .where(and(eq(participant.incidentId, body.id), eq(participantRole.role, "reporter")));
    expect(people).toEqual([{ email: "dave@example.com", role: "reporter", leftAt: null }]);
    expect(await told(body.id)).toMatchObject([
      {
        actor: "dave@example.com",
        source: "core",
        kind: "incident.reported",
        description: `${body.name} reported: Disk full`,
        at: server.clock.now(),
      },
    ]);
  });

  test("has its type's visibility unless the reporter chooses one", async () => {
    const at = server.clock.now();
    const [breach] = await server.db
      .insert(incidentType)
      .values({ name: "Breach", visibility: "Restricted", createdAt: at, updatedAt: at })
      .returning();
    const visibilityOf = async (values: object) =>
      (await member.call("POST", "/incidents/", { ...outage, ...values })).body.visibility;
    expect(await visibilityOf({ incident_type_id: breach!.id })).toBe("Restricted");
    expect(await visibilityOf({ incident_type_id: breach!.id, visibility: "Open" })).toBe("Open");
    expect(await visibilityOf({ visibility: "Restricted" })).toBe("Restricted");
  });

  test.each([
    ["no title", { title: undefined }, "title"],
    ["an empty title", { title: " \t " }, "title"],
    ["a long title", { title: "a".repeat(501) }, "title"],
    ["a title of two lines", { title: "a\nb" }, "title"],
    ["null for a description", { description: null }, "description"],
    ["a commander who is nobody", { commander: "a b" }, "commander"],
    ["an empty commander", { commander: "" }, "commander"],
    ["null for a commander", { commander: null }, "commander"],
    ["a participant who is nobody", { participants: ["dana@example.com", "a b@c"] }, "participants"],
    ["participants that are no list", { participants: "dana@example.com" }, "participants"],
    ["too many participants", { participants: Array(51).fill("dana@example.com") }, "participants"],
    ["NUL", { description: "a\0b" }, "description"],
    ["half a pair", { description: "\ud800" }, "description"],
    ["a long description", { description: "a".repeat(20_001) }, "description"],
    ["an invalid visibility", { visibility: "Secret" }, "visibility"],
    ["null for a visibility", { visibility: null }, "visibility"],
    ["a missing type", { incident_type_id: 4711 }, "incident_type_id"],
    ["a negative type", { incident_type_id: -1 }, "incident_type_id"],
    ["a huge type", { incident_type_id: 2 ** 60 }, "incident_type_id"],
    ["a type as text", { incident_type_id: "1" }, "incident_type_id"],
    ["no type", { incident_type_id: undefined }, "incident_type_id"],
    ["a missing priority", { incident_priority_id: 4711 }, "incident_priority_id"],
    ["no priority", { incident_priority_id: undefined }, "incident_priority_id"],
    ["a status, which it has not earned", { status: "Closed" }, "status"],
    ["an unknown field", { visibilty: "Restricted" }, "visibilty"],
  ])("refuses %s, naming the field but not the value", async (_, change, field) => {
    const before = await server.db.select({ rows: count() }).from(incident);
    const answer = await member.call("POST", "/incidents/", { ...outage, ...change });
    expect(answer).toMatchObject({ http: 400, body: { code: "invalid_input", field } });
    for (const value of Object.values(change)) {
      if (typeof value === "string" && value.length > 3)
        expect(JSON.stringify(answer.body)).not.toContain(value);
    }
    expect(await server.db.select({ rows: count() }).from(incident)).toEqual(before);
  });

  test("refuses a type that is deleted during the report", async () => {
    const at = server.clock.now();
    const [gone] = await server.db
      .insert(incidentType)
      .values({ name: "Gone", createdAt: at, updatedAt: at })
      .returning();
    let answer: Promise<ApiAnswer> | undefined;
    await server.db.transaction(async (tx) => {
      await tx.delete(incidentType).where(eq(incidentType.id, gone!.id));
      answer = member.call("POST", "/incidents/", { ...outage, incident_type_id: gone!.id });
      await somebodyWaits(server.db);
    });
    expect(await answer).toMatchObject({ http: 400, body: { field: "incident_type_id" } });
  });

  test("fifty concurrent requests without a key create fifty, each with its own number and one reporter", async () => {
    const erin = await personOf(server, "erin@example.com");
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => erin.call("POST", "/incidents/", outage)),
    );
    expect(new Set(answers.map(({ body }) => body.name)).size).toBe(50);
    const people = await server.db.select().from(individual).where(eq(individual.email, "erin@example.com"));
    expect(people).toHaveLength(1);
  });
});

describe("DELETE /incidents/{incident_id}", () => {
  test("deletes it and its parts with an audit entry; a second call is 404", async () => {
    const id = await reported();
    const { name } = (await admin.call("GET", `/incidents/${id}`)).body;
    expect(await admin.call("DELETE", `/incidents/${id}`)).toMatchObject({ http: 204, body: undefined });
    expect((await admin.call("GET", `/incidents/${id}`)).http).toBe(404);
    expect((await admin.call("DELETE", `/incidents/${id}`)).http).toBe(404);
    expect(await auditOf(id)).toMatchObject([
      { actor: "root@example.com", address: "127.0.0.1", data: { name } },
    ]);
    expect(await told(id)).toEqual([]);
  });

  test("of an incident with documents or tasks is 409 and says so", async () => {
    const answer = await admin.call("DELETE", `/incidents/${ids.incidentId}`);
    expect(answer).toMatchObject({ http: 409, body: { code: "conflict" } });
    expect(answer.body.detail).toMatch(/^This incident is referred to by a (document|task)$/);
    expect((await admin.call("GET", `/incidents/${ids.incidentId}`)).http).toBe(200);
    expect(await auditOf(ids.incidentId)).toEqual([]);
  });
});
