import { describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { individual } from "../../drizzle/schema/index.ts";
import { type EmptyIncident, useEmptyIncident } from "../../tests/support/http/empty_incident.ts";
import {
  commandersOf,
  costBasisOf,
  insertIndividual,
  letJoin,
  rowsOf,
  timelineOf,
} from "../../tests/support/http/participants.ts";

let { server, member, ids, incidentId, path } = {} as EmptyIncident;
useEmptyIncident("participants", (given) => {
  ({ server, member, ids, incidentId, path } = given);
});

const newPerson = () => insertIndividual(server.db, server.clock.now());
const joined = async (...roles: Parameters<typeof letJoin>[4] & string[]) =>
  letJoin(server.db, incidentId, await newPerson(), server.clock.now(), roles);
const openRoles = (participant: { roles: { role: string; renounced_at: string | null }[] }) =>
  participant.roles.filter(({ renounced_at }) => renounced_at === null).map(({ role }) => role);
const kinds = async () => (await timelineOf(server.db, incidentId)).map(({ kind }) => kind);

describe("POST participants", () => {
  test("answers 201 with the participant and its Location, and adds a timeline event", async () => {
    const { http, body, headers } = await member.call("POST", `${path}/`, { individual_id: ids.bob });
    expect(http).toBe(201);
    const at = server.clock.now().toISOString();
    expect(body).toEqual({
      id: expect.any(Number),
      joined_at: at,
      left_at: null,
      individual: { id: ids.bob, name: "bob", email: "bob@example.com" },
      roles: [{ id: expect.any(Number), role: "participant", assumed_at: at, renounced_at: null }],
    });
    expect(headers.get("location")).toBe(`${path}/${body.id}`);
    expect(await member.call("GET", headers.get("location")!)).toMatchObject({ http: 200, body });
    expect(await timelineOf(server.db, incidentId)).toMatchObject([
      {
        actor: "carol@example.com",
        source: "core",
        kind: "participant.joined",
        description: "bob joined",
        data: { participant_id: body.id, individual_id: ids.bob },
      },
      {
        actor: "carol@example.com",
        kind: "role.assumed",
        description: "bob became a participant",
        data: { participant_id: body.id, role: "participant" },
      },
    ]);
  });

  test("by e-mail finds the individual in any spelling, or creates one", async () => {
    const known = await member.call("POST", `${path}/`, { email: "BOB" });
    expect(known).toMatchObject({ http: 201, body: { individual: { id: ids.bob } } });
    const made = await member.call("POST", `${path}/`, { email: "New.One@Example.COM" });
    expect(made).toMatchObject({
      http: 201,
      body: { individual: { name: "new.one", email: "new.one@example.com" } },
    });
    const [row] = await server.db
      .select()
      .from(individual)
      .where(eq(individual.email, "new.one@example.com"));
    expect(row!.id).toBe(made.body.individual.id);
  });

  test("adds new roles to a participant; without new ones it is 409 and nothing happens", async () => {
    const wanted = { individual_id: ids.bob, roles: ["scribe"] };
    const first = await member.call("POST", `${path}/`, wanted);
    const more = await member.call("POST", `${path}/`, {
      ...wanted,
      roles: ["scribe", "liaison", "liaison"],
    });
    expect(more).toMatchObject({ http: 201, body: { id: first.body.id } });
    expect(openRoles(more.body)).toEqual(["scribe", "liaison"]);
    const before = await kinds();
    const basis = await costBasisOf(server.db, incidentId);
    for (const roles of [["scribe"], ["liaison", "scribe"], []]) {
      const again = await member.call("POST", `${path}/`, { ...wanted, roles });
      expect(again).toMatchObject({ http: 409, body: { code: "conflict" } });
    }
    expect(await kinds()).toEqual(before);
    expect(await costBasisOf(server.db, incidentId)).toBe(basis);
  });

  test.each([
    ["nobody", {}, "individual_id"],
    ["both an id and an e-mail", { individual_id: 1, email: "bob@example.com" }, "individual_id"],
    ["an individual that does not exist", { individual_id: 4_711_000 }, "individual_id"],
    ["a negative individual", { individual_id: -1 }, "individual_id"],
    ["an individual as text", { individual_id: "1" }, "individual_id"],
    ["an empty e-mail", { email: "" }, "email"],
    ["an e-mail of spaces", { email: "   " }, "email"],
    ["an e-mail with two @", { email: "zebra@zebra@example.com" }, "email"],
    ["an e-mail that looks like another", { email: "\u212Aate@example.com" }, "email"],
    ["an e-mail with NUL", { email: "zebra\0@example.com" }, "email"],
    ["a long e-mail", { email: `${"a".repeat(300)}@example.com` }, "email"],
    ["an invalid role", { individual_id: 1, roles: ["emperor"] }, "roles.0"],
    ["a role that is an object", { individual_id: 1, roles: [{}] }, "roles.0"],
    ["a list as a role", { individual_id: 1, roles: [["scribe"]] }, "roles.0"],
    ["roles that are not a list", { individual_id: 1, roles: "scribe" }, "roles"],
    ["too many roles", { individual_id: 1, roles: Array.from({ length: 7 }, () => "scribe") }, "roles"],
    ["an unknown field", { individual_id: 1, role: "scribe" }, "role"],
  ])("refuses %s, naming the field but not the value", async (_, body, field) => {
    const answer = await member.call("POST", `${path}/`, body);
    expect(answer).toMatchObject({ http: 400, body: { code: "invalid_input", field } });
    expect(JSON.stringify(answer.body)).not.toMatch(/zebra|emperor|aaaa/);
    expect(await kinds()).toEqual([]);
  });
});

describe("POST roles", () => {
  test("adds a role once", async () => {
    const id = await joined();
    const basis = await costBasisOf(server.db, incidentId);
    const { http, body, headers } = await member.call("POST", `${path}/${id}/roles`, { role: "liaison" });
    expect([http, openRoles(body)]).toEqual([201, ["liaison"]]);
    expect(headers.get("location")).toBe(`${path}/${id}`);
    expect(await costBasisOf(server.db, incidentId)).toBeGreaterThan(basis);
    expect((await member.call("POST", `${path}/${id}/roles`, { role: "liaison" })).http).toBe(409);
    expect(await kinds()).toEqual(["participant.joined", "role.assumed"]);
  });

  test("commander: the previous one hands over, and the timeline names both", async () => {
    const first = await joined("commander");
    const second = await joined("scribe");
    server.clock.advance(60);
    const answer = await member.call("POST", `${path}/${second}/roles`, { role: "commander" });
    expect([answer.http, openRoles(answer.body)]).toEqual([201, ["scribe", "commander"]]);
    expect(await commandersOf(server.db, incidentId)).toEqual([second]);
    const before = (await member.call("GET", `${path}/${first}`)).body;
    expect(before).toMatchObject({
      left_at: null,
      roles: [{ role: "commander", renounced_at: server.clock.now().toISOString() }],
    });
    const last = (await timelineOf(server.db, incidentId)).at(-1)!;
    expect(last).toMatchObject({
      kind: "role.assumed",
      actor: "carol@example.com",
      data: { participant_id: second, role: "commander", from_participant_id: first },
    });
    expect(last.description).toBe(
      `${answer.body.individual.name} took over as commander from ${before.individual.name}`,
    );
  });

  test("commander: `replaces` must be the current commander, or it is 409 and nothing changes", async () => {
    const first = await joined("commander");
    const second = await joined();
    const third = await joined();
    const take = (by: number, replaces: number) =>
      member.call("POST", `${path}/${by}/roles`, { role: "commander", replaces });
    expect((await take(second, first)).http).toBe(201);
    const before = await rowsOf(server.db, incidentId);
    for (const seen of [first, third, 4_711_000])
      expect(await take(third, seen)).toMatchObject({ http: 409, body: { code: "conflict" } });
    expect(await rowsOf(server.db, incidentId)).toEqual(before);
    expect((await take(third, second)).http).toBe(201);
  });

  test.each([
    [{ role: "scribe", replaces: 1 }, "replaces"],
    [{ role: "commander", replaces: "1" }, "replaces"],
    [{ role: "commander", replaces: 0 }, "replaces"],
    [{ role: "Commander" }, "role"],
    [{ role: null }, "role"],
    [{}, "role"],
    [{ role: "scribe", x: 1 }, "x"],
  ])("refuses %p", async (body, field) => {
    const id = await joined();
    const answer = await member.call("POST", `${path}/${id}/roles`, body);
    expect(answer).toMatchObject({ http: 400, body: { field } });
  });
});

describe("POST renounce", () => {
  test("ends a role once", async () => {
    const id = await joined("scribe", "liaison");
    const basis = await costBasisOf(server.db, incidentId);
    const { http, body } = await member.call("POST", `${path}/${id}/renounce`, { role: "scribe" });
    expect([http, openRoles(body)]).toEqual([200, ["liaison"]]);
    expect(await costBasisOf(server.db, incidentId)).toBeGreaterThan(basis);
    expect((await timelineOf(server.db, incidentId)).at(-1)).toMatchObject({
      kind: "role.renounced",
      data: { participant_id: id, role: "scribe" },
      description: `${body.individual.name} is no longer scribe`,
    });
    const again = await member.call("POST", `${path}/${id}/renounce`, { role: "scribe" });
    expect(again).toMatchObject({ http: 409, body: { code: "conflict" } });
    expect((await member.call("POST", `${path}/${id}/roles`, { role: "scribe" })).body.roles).toHaveLength(3);
  });

  test("does not end command: an incident keeps its commander", async () => {
    const id = await joined("commander");
    const refused = await member.call("POST", `${path}/${id}/renounce`, { role: "commander" });
    expect(refused).toMatchObject({ http: 409, body: { detail: "Hand over command first" } });
    expect(await commandersOf(server.db, incidentId)).toEqual([id]);
    const other = await joined();
    expect(await member.call("POST", `${path}/${other}/renounce`, { role: "commander" })).toMatchObject({
      http: 409,
      body: { detail: "This participant does not have the role" },
    });
  });
});
