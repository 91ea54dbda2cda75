import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { and, eq, like } from "drizzle-orm";
import { lockIncident } from "../../core/incident/incident/lock.ts";
import { event, incident, incidentPriority, participant } from "../../drizzle/schema/index.ts";
import { somebodyWaits } from "../../tests/support/database/blocked.ts";
import { type IncidentIds, insertIncident } from "../../tests/support/domain/incident.ts";
import { type ApiAnswer, type Person, personOf } from "../../tests/support/http/people.ts";
import { startTestServer, type TestServer } from "../../tests/support/http/server.ts";

let server: TestServer;
let admin: Person;
let member: Person;
let ids: IncidentIds;
let fields: Record<string, unknown>;
beforeAll(async () => {
  server = await startTestServer();
  admin = await personOf(server, "root@example.com", ["admin"]);
  member = await personOf(server, "carol@example.com");
  ids = await insertIncident(server.db, server.clock.now());
  fields = {
    title: "Disk full",
    description: "No space left",
    incident_type_id: ids.incidentTypeId,
    incident_priority_id: ids.incidentPriorityId,
  };
});
afterAll(() => server[Symbol.asyncDispose]());

/** A PUT of a new incident that changes nothing. */
const whole = () => ({ ...fields, status: "Active", visibility: "Open", resolution: null, version: 1 });

async function reported(by = member): Promise<number> {
  const { http, body } = await by.call("POST", "/incidents/", fields);
  expect(http).toBe(201);
  return body.id;
}

const put = (id: number, change: object, by = member) =>
  by.call("PUT", `/incidents/${id}`, { ...whole(), ...change });

const rowOf = async (id: number) => (await server.db.select().from(incident).where(eq(incident.id, id)))[0]!;

/** The timeline's events about the incident after its report. */
async function told(incidentId: number) {
  const all = await server.db
    .select()
    .from(event)
    .where(and(eq(event.incidentId, incidentId), like(event.kind, "incident.%")))
    .orderBy(event.id);
  return all.slice(1);
}

describe("PUT /incidents/{incident_id}", () => {
  test("replaces the given version, increments it, and records what changed", async () => {
    const at = server.clock.now();
    const id = await reported();
    const [low] = await server.db
      .insert(incidentPriority)
      .values({ name: "Low again", reminderHours: 24, createdAt: at, updatedAt: at })
      .returning();
    server.clock.advance(60);
    const change = {
      ...whole(),
      title: "Disk very full",
      description: "The disk of db-1",
      resolution: "Bought disks",
      incident_priority_id: low!.id,
      version: 1,
    };
    const { http, body, headers } = await member.call("PUT", `/incidents/${id}`, change);
    expect({ http, body }).toMatchObject({ http: 200, body: { ...change, version: 2 } });
    expect(body).toMatchObject({
      incident_priority: { id: low!.id, name: "Low again" },
      reported_at: at.toISOString(),
      updated_at: server.clock.now().toISOString(),
    });
    expect(headers.get("etag")).toBe('"2"');
    expect((await member.call("GET", `/incidents/${id}`)).body).toMatchObject(body);
    expect(await told(id)).toMatchObject([
      {
        kind: "incident.updated",
        actor: "carol@example.com",
        source: "core",
        description: "Changed: title, description, resolution, priority from Urgent to Low again",
        data: {
          changed: ["title", "description", "resolution", "incident_priority_id"],
          description: { from: "No space left" },
          resolution: { from: null },
          incident_priority_id: { from: ids.incidentPriorityId, to: low!.id },
        },
      },
    ]);
  });

  test("that changes nothing adds no event", async () => {
    const id = await reported();
    expect(await put(id, {})).toMatchObject({ http: 200, body: { version: 2 } });
    expect(await told(id)).toEqual([]);
  });

  test("with another version is 409 and changes nothing, whatever it contains", async () => {
    const id = await reported();
    await put(id, { status: "Closed" });
    const before = await rowOf(id);
    for (const version of [1, 3, 99, 2_147_483_646]) {
      // Closed → Stable is refused as well, but not with this error.
      for (const status of ["Active", "Stable"]) {
        const answer = await put(id, { status, title: "Lost", version });
        expect(answer).toMatchObject({ http: 409, body: { code: "conflict" } });
        expect(answer.body.detail).toContain("version 2");
      }
    }
    expect(await rowOf(id)).toEqual(before);
    expect(await told(id)).toHaveLength(2);
  });

  test("of twenty concurrent requests, one succeeds and the others get 409", async () => {
    const id = await reported();
    const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => put(id, { title: `Title ${i}` })));
    expect(answers.map(({ http }) => http).sort()).toEqual([200, ...Array.from({ length: 19 }, () => 409)]);
    const { body } = await member.call("GET", `/incidents/${id}`);
    expect(body).toMatchObject(answers.find(({ http }) => http === 200)!.body);
    expect(await told(id)).toHaveLength(1);
  });

  test.each([
    ["version", [0, -1, 1.5, "x", "1", null, 2 ** 31, 1e300]],
    ["status", ["Open", "active", "", null, 1, ["Active"]]],
    ["visibility", ["Secret", "open", null, {}]],
    ["incident_type_id", [4711, 0, -1, 2 ** 60, "1", null]],
    ["incident_priority_id", [4711, 0, -1, 2 ** 60, "1", null]],
    ["title", ["", " ", "a\nb", "a\0", "a".repeat(501), null]],
    ["description", ["\ud800", "a".repeat(20_001), null]],
    ["resolution", ["\0", "a".repeat(20_001), 1]],
  ])("an invalid %s is refused by name", async (field, values) => {
    const id = await reported();
    for (const value of [...values, undefined]) {
      const answer = await put(id, { [field]: value });
      expect([value, answer]).toMatchObject([value, { http: 400, body: { field } }]);
    }
    expect((await rowOf(id)).version).toBe(1);
  });
});

describe("the impact", () => {
  const start = "2026-11-20T10:00:00.000Z";
  const end = "2026-11-20T11:30:00.000Z";
  const both = { impact_started_at: start, impact_ended_at: end };

  test("has times of its own, also for a Closed incident, and the timeline has both values", async () => {
    const id = await reported();
    expect((await put(id, { status: "Closed" })).body).toMatchObject({ impact_started_at: null });
    const closed = { status: "Closed", ...both, version: 2 };
    expect((await put(id, closed)).body).toMatchObject(both);
    expect((await put(id, { ...closed, impact_ended_at: null, version: 3 })).body).toMatchObject({
      impact_started_at: start,
      impact_ended_at: null,
    });
    expect((await told(id)).slice(2)).toMatchObject([
      {
        description:
          "Changed: start of the impact from none to 2026-11-20 10:00 UTC, end of the impact from none to 2026-11-20 11:30 UTC",
        data: { impact_started_at: { from: null, to: start }, impact_ended_at: { from: null, to: end } },
      },
      { description: "Changed: end of the impact from 2026-11-20 11:30 UTC to none" },
    ]);
  });

  test("stays in a PUT without these fields, which clients of an older release send", async () => {
    const id = await reported();
    await put(id, both);
    expect((await put(id, { title: "Disk fuller", version: 2 })).body).toMatchObject(both);
    expect((await told(id)).at(-1)).toMatchObject({ description: "Changed: title" });
  });

  test("is refused in the future, and with an end before the start", async () => {
    const id = await reported();
    const later = new Date(server.clock.now().getTime() + 1000).toISOString();
    for (const [change, field] of [
      [{ impact_started_at: later }, "impact_started_at"],
      [{ impact_ended_at: later }, "impact_ended_at"],
      [{ impact_started_at: end, impact_ended_at: start }, "impact_started_at"],
      [{ impact_ended_at: "yesterday" }, "impact_ended_at"],
      [{ impact_ended_at: "2026-11-20T11:30:00" }, "impact_ended_at"],
    ] as const)
      expect(await put(id, change)).toMatchObject({ http: 400, body: { field } });
    await put(id, { impact_started_at: end });
    expect(await put(id, { impact_ended_at: start, version: 2 })).toMatchObject({
      http: 400,
      body: { field: "impact_ended_at", detail: "The impact must not end before it starts" },
    });
  });
});

describe("a status", () => {
  test("changes to the next one, with its timestamp, event and a new cost computation", async () => {
    const id = await reported();
    const instant = () => server.clock.now().toISOString();
    server.clock.advance(60);
    const stableAt = instant();
    expect((await put(id, { status: "Stable" })).body).toMatchObject({
      stable_at: stableAt,
      closed_at: null,
    });
    server.clock.advance(60);
    const closedAt = instant();
    const closing = await put(id, { status: "Closed", version: 2 });
    expect(closing.body).toMatchObject({ stable_at: stableAt, closed_at: closedAt });
    server.clock.advance(60);
    const reopening = await put(id, { version: 3 });
    expect(reopening.body).toMatchObject({ status: "Active", stable_at: null, closed_at: null });
    const { name, costBasis } = await rowOf(id);
    expect(costBasis).toBeGreaterThanOrEqual(4);
    expect((await told(id)).map(({ kind, description, data }) => [kind, description, data])).toEqual([
      ["incident.stable", `${name} is stable`, {}],
      ["incident.closed", `${name} is closed`, {}],
      ["incident.reopened", `${name} was reopened`, { stable_at: stableAt, closed_at: closedAt }],
    ]);
  });

  test("set twice concurrently changes once: one closes the incident, the other gets 409", async () => {
    const other = await personOf(server, "dave@example.com");
    for (let round = 0; round < 5; round += 1) {
      const id = await reported();
      const answers = await Promise.all([member, other].map((by) => put(id, { status: "Closed" }, by)));
      expect(answers.map(({ http }) => http).sort()).toEqual([200, 409]);
      expect((await told(id)).map(({ kind }) => kind)).toEqual(["incident.stable", "incident.closed"]);
    }
  });
});

describe("an incident that a member makes Restricted", () => {
  test("must be one they participate in, since they could no longer read it", async () => {
    const id = await reported();
    const outsider = await personOf(server, "erin@example.com");
    const refused = await put(id, { visibility: "Restricted", title: "Mine" }, outsider);
    expect(refused).toMatchObject({ http: 409, body: { code: "conflict" } });
    expect(refused.body.detail).toContain("Take part");
    expect(await rowOf(id)).toMatchObject({ visibility: "Open", title: "Disk full", version: 1 });
    expect(await told(id)).toEqual([]);

    expect(await put(id, { visibility: "Restricted" })).toMatchObject({ http: 200 });
    expect((await told(id)).at(-1)!.data).toEqual({
      changed: ["visibility"],
      visibility: { from: "Open", to: "Restricted" },
    });
    expect((await put(id, { version: 2 }, outsider)).http).toBe(404);
  });

  test("cannot be changed by them after they left", async () => {
    const id = await reported();
    await server.db
      .update(participant)
      .set({ leftAt: server.clock.now() })
      .where(eq(participant.incidentId, id));
    expect((await put(id, { visibility: "Restricted" })).http).toBe(409);
  });

  test("cannot be changed by them if they leave concurrently", async () => {
    const id = await reported();
    let answer: Promise<ApiAnswer> | undefined;
    await server.db.transaction(async (tx) => {
      await lockIncident(tx, "worker", id);
      answer = put(id, { visibility: "Restricted" });
      await somebodyWaits(server.db);
      await tx.update(participant).set({ leftAt: server.clock.now() }).where(eq(participant.incidentId, id));
    });
    expect((await answer)!.http).toBe(409);
    expect(await rowOf(id)).toMatchObject({ visibility: "Open", version: 1 });
  });

  test("is hidden from a participant who is removed while their change waits", async () => {
    const id = await reported();
    await put(id, { visibility: "Restricted" });
    let answer: Promise<ApiAnswer> | undefined;
    await server.db.transaction(async (tx) => {
      await lockIncident(tx, "worker", id);
      answer = put(id, { visibility: "Restricted", title: "Disk fuller", version: 2 });
      await somebodyWaits(server.db);
      await tx.update(participant).set({ leftAt: server.clock.now() }).where(eq(participant.incidentId, id));
    });
    expect(await answer).toMatchObject({ http: 404, body: { detail: "There is no such incident" } });
    expect(await rowOf(id)).toMatchObject({ title: "Disk full", version: 2 });
  });

  test("is hidden from a participant who leaves before their change is applied", async () => {
    const id = await reported();
    await put(id, { visibility: "Restricted" });
    let answer: Promise<ApiAnswer> | undefined;
    await server.db.transaction(async (tx) => {
      // As they do to leave.
      await lockIncident(tx, "worker", id);
      answer = put(id, { visibility: "Restricted", version: 2 });
      await somebodyWaits(server.db);
      await tx.update(participant).set({ leftAt: server.clock.now() }).where(eq(participant.incidentId, id));
    });
    expect((await answer)!.http).toBe(404);
  });

  test("may be any incident if they are an admin", async () => {
    const id = await reported();
    expect((await put(id, { visibility: "Restricted" }, admin)).http).toBe(200);
    expect((await put(id, { visibility: "Open", version: 2 }, admin)).http).toBe(200);
  });
});

test("a PUT accepts an incident, document or task as GET returned it, and ignores read-only fields", async () => {
  const incidentId = await reported();
  const document = await member.call("POST", "/documents/", {
    name: "Notes",
    resource_type: "reference",
    incident_id: incidentId,
  });
  const task = await member.call("POST", "/tasks/", {
    incident_id: incidentId,
    description: "Free some",
    owner: "carol@example.com",
    assignees: ["carol"],
  });
  for (const path of [
    `/incidents/${incidentId}`,
    `/documents/${document.body.id}`,
    `/tasks/${task.body.id}`,
  ]) {
    const { body: shown, headers } = await member.call("GET", path);
    const sent = { ...shown, created_at: "2001-01-01T00:00:00.000Z", id: 4711 };
    const { http, body } = await member.call("PUT", path, sent, { "if-match": headers.get("etag")! });
    expect([path, http]).toEqual([path, 200]);
    expect(body).toMatchObject({ id: shown.id, created_at: shown.created_at, version: 2 });
    const { version: _, updated_at: __, ...same } = shown;
    expect((await member.call("GET", path)).body).toMatchObject(same);
  }
});
