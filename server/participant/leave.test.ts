import { describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { auditLog } from "../../drizzle/schema/index.ts";
import { type EmptyIncident, useEmptyIncident } from "../../tests/support/http/empty_incident.ts";
import {
  costBasisOf,
  insertIndividual,
  letJoin,
  rowsOf,
  timelineOf,
} from "../../tests/support/http/participants.ts";

let { server, member, admin, incidentId, path } = {} as EmptyIncident;
useEmptyIncident("participants", (given) => {
  ({ server, member, admin, incidentId, path } = given);
});

const newPerson = () => insertIndividual(server.db, server.clock.now());
const joined = async (...roles: Parameters<typeof letJoin>[4] & string[]) =>
  letJoin(server.db, incidentId, await newPerson(), server.clock.now(), roles);
const kinds = async () => (await timelineOf(server.db, incidentId)).map(({ kind }) => kind);

describe("POST leave", () => {
  test.each([undefined, {}])("ends the participation and all its roles (body %p)", async (body) => {
    const id = await joined("scribe", "liaison");
    const basis = await costBasisOf(server.db, incidentId);
    server.clock.advance(60);
    const at = server.clock.now().toISOString();
    const answer = await member.call("POST", `${path}/${id}/leave`, body);
    expect(answer).toMatchObject({
      http: 200,
      body: { left_at: at, roles: [{ renounced_at: at }, { renounced_at: at }] },
    });
    expect(await costBasisOf(server.db, incidentId)).toBeGreaterThan(basis);
    expect((await timelineOf(server.db, incidentId)).at(-1)).toMatchObject({
      kind: "participant.left",
      description: `${answer.body.individual.name} left`,
      data: { participant_id: id, roles: ["liaison", "scribe"] },
    });
  });

  test("prevents further changes of the participation", async () => {
    const id = await joined("scribe");
    await member.call("POST", `${path}/${id}/leave`);
    const before = await kinds();
    const refused = { http: 409, body: { detail: "This participant has left" } };
    expect(await member.call("POST", `${path}/${id}/leave`)).toMatchObject(refused);
    expect(await member.call("POST", `${path}/${id}/roles`, { role: "liaison" })).toMatchObject(refused);
    expect(await member.call("POST", `${path}/${id}/roles`, { role: "commander" })).toMatchObject(refused);
    expect(await member.call("POST", `${path}/${id}/renounce`, { role: "scribe" })).toMatchObject(refused);
    expect(await kinds()).toEqual(before);
  });

  test("is refused for the commander, who must hand over first", async () => {
    const id = await joined("commander");
    const other = await joined();
    const refused = await member.call("POST", `${path}/${id}/leave`);
    expect(refused).toMatchObject({ http: 409, body: { detail: "Hand over command first" } });
    await member.call("POST", `${path}/${other}/roles`, { role: "commander" });
    expect((await member.call("POST", `${path}/${id}/leave`)).http).toBe(200);
  });

  test("refuses a body with fields", async () => {
    const id = await joined();
    expect((await member.call("POST", `${path}/${id}/leave`, { at: "now" })).http).toBe(400);
  });
});

describe("DELETE", () => {
  test("is for admins only, whether the participant exists or not", async () => {
    const id = await joined();
    const refused = await member.call("DELETE", `${path}/${id}`);
    const nothing = await member.call("DELETE", "/incidents/4711/participants/4711");
    expect([refused.http, nothing.http]).toEqual([403, 403]);
    expect(nothing.body).toEqual({ ...refused.body, request_id: expect.any(String) });
  });

  test("deletes the participation of a person who left, with an audit entry; a second call is 404", async () => {
    const id = await joined("scribe");
    await member.call("POST", `${path}/${id}/leave`);
    const basis = await costBasisOf(server.db, incidentId);
    expect(await admin.call("DELETE", `${path}/${id}`)).toMatchObject({ http: 204, body: undefined });
    expect(await rowsOf(server.db, incidentId)).toEqual({ participants: [], roles: [] });
    expect(await costBasisOf(server.db, incidentId)).toBeGreaterThan(basis);
    expect((await admin.call("DELETE", `${path}/${id}`)).http).toBe(404);
    const noted = await server.db
      .select()
      .from(auditLog)
      .where(eq(auditLog.subject, String(id)));
    expect(noted).toMatchObject([
      { actor: "root@example.com", action: "participant.deleted", address: "127.0.0.1" },
    ]);
    expect((await timelineOf(server.db, incidentId)).at(-1)).toMatchObject({
      kind: "participant.deleted",
      data: { participant_id: id },
    });
  });

  test.each(["commander", "scribe"] as const)("is refused for a current %s", async (role) => {
    const id = await joined(role);
    const before = await rowsOf(server.db, incidentId);
    expect(await admin.call("DELETE", `${path}/${id}`)).toMatchObject({
      http: 409,
      body: { detail: "This participant has not left the incident: they have to leave first" },
    });
    expect(await rowsOf(server.db, incidentId)).toEqual(before);
  });
});
