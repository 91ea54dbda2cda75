import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import * as schema from "../../drizzle/schema/index.ts";
import type { Fake } from "../../plugins/fake/fake.ts";
import { fakeParticipant } from "../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../plugins/fake/plugins.ts";
import { insertRow } from "../../tests/support/http/catalog.ts";
import { type Person, personOf } from "../../tests/support/http/people.ts";
import { startTestServer, type TestServer } from "../../tests/support/http/server.ts";

let server: TestServer;
let admin: Person;
let member: Person;
let pager: Fake<"participant">;
let n = 0;
const people: number[] = [];
beforeAll(async () => {
  pager = fakeParticipant({}, { slug: "pager", timeoutMilliseconds: 50 });
  server = await startTestServer({ tokenLifetime: 7 * 24 * 3600 }, pluginsOf(pager));
  admin = await personOf(server, "root@example.com", ["admin"]);
  member = await personOf(server, "carol@example.com");
  for (const name of ["alice", "bob"])
    people.push(await insertRow(server.db, schema.individual, { name, email: `${name}@example.com` }));
});
beforeEach(() => {
  n += 1;
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  pager.assertExpected();
});

const whole = (change: object = {}) => ({
  name: `Service ${n}`,
  description: "",
  plugin_slug: "roster",
  external_id: null,
  rotation: null,
  ...change,
});
const rotation = (change: object = {}) => ({
  starts_at: "2026-11-02T09:00:00.000Z",
  shift_hours: 168,
  members: [...people, people[0]],
  ...change,
});
const post = (change: object) => admin.call("POST", "/services/", whole(change));

describe("a rotation", () => {
  test("is stored in order, replaced and removed", async () => {
    const { http, body } = await post({ rotation: rotation() });
    expect([http, body.rotation]).toEqual([201, rotation()]);
    const path = `/services/${body.id}`;
    const next = rotation({ starts_at: "2026-11-02T10:00:00+01:00", shift_hours: 1, members: [people[1]] });
    const put = await admin.call("PUT", path, { ...whole({ rotation: next }), version: 1 });
    expect(put.body.rotation).toEqual({ ...next, starts_at: "2026-11-02T09:00:00.000Z" });
    expect((await member.call("GET", `/services/?name=Service+${n}`)).body.items).toEqual([put.body]);
    const without = await admin.call("PUT", path, { ...whole(), version: 2 });
    expect([without.http, without.body.rotation]).toEqual([200, null]);
    expect((await admin.call("DELETE", path)).http).toBe(204);
  });

  test.each([
    ["an unknown person", () => ({ members: [people[0], 999_999] }), "rotation.members"],
    ["no members", () => ({ members: [] }), "rotation"],
    ["201 turns", () => ({ members: Array.from({ length: 201 }, () => people[0]) }), "rotation"],
    ["no hours", () => ({ shift_hours: 0 }), "rotation"],
    ["more hours than a year has", () => ({ shift_hours: 8761 }), "rotation"],
    ["half an hour", () => ({ shift_hours: 0.5 }), "rotation"],
    ["an invalid time", () => ({ starts_at: "secretly" }), "rotation"],
    ["a date that does not exist", () => ({ starts_at: "2026-02-30T09:00:00Z" }), "rotation"],
    ["a leap second", () => ({ starts_at: "2016-12-31T23:59:60Z" }), "rotation"],
    ["the year 0", () => ({ starts_at: "0000-01-01T00:00:00Z" }), "rotation.starts_at"],
    ["no time zone", () => ({ starts_at: "2026-11-02T09:00:00" }), "rotation"],
    ["an unknown field", () => ({ unheard: 1 }), "rotation"],
  ])("with %s is refused, and nothing is stored", async (_, change, field) => {
    const answer = await post({ rotation: rotation(change()) });
    expect(answer).toMatchObject({ http: 400, body: { code: "invalid_input" } });
    expect(answer.body.field).toStartWith(field);
    expect(JSON.stringify(answer.body)).not.toContain("secretly");
    expect((await member.call("GET", `/services/?name=Service+${n}`)).body.items).toEqual([]);
  });

  test("is accepted only for a service of the roster", async () => {
    const answer = await post({ plugin_slug: null, rotation: rotation() });
    expect(answer).toMatchObject({ http: 400, body: { field: "rotation" } });
  });
});

describe("a plugin", () => {
  test.each(["nobody-has-it", "webhook", "term-source", "", "a\0b"])(
    "with slug %p is refused",
    async (slug) => {
      const answer = await post({ plugin_slug: slug });
      expect(answer).toMatchObject({ http: 400, body: { field: "plugin_slug" } });
    },
  );

  test("identifies a service by a unique external_id", async () => {
    const named = { external_id: `PD${n}` };
    expect((await post(named)).body).toMatchObject(named);
    expect(await post({ ...named, name: "Another" })).toMatchObject({
      http: 409,
      body: { detail: "Another service has this external_id of this plugin" },
    });
    for (const wrong of [{ ...named, plugin_slug: null }, { external_id: " " }, { external_id: "a\0b" }])
      expect(await post(wrong)).toMatchObject({ http: 400, body: { field: "external_id" } });
  });
});

describe("GET /services/{service_id}/on_call", () => {
  const ask = (id: number | string) => member.call("GET", `/services/${id}/on_call`);
  const named = (name: string) => ({
    id: people[name === "alice" ? 0 : 1],
    name,
    email: `${name}@example.com`,
  });

  test("returns the person whose turn it is", async () => {
    const starts = new Date(server.clock.now().getTime() + 3_600_000).toISOString();
    const { body } = await post({
      rotation: rotation({ starts_at: starts, shift_hours: 2, members: people }),
    });
    const turns: unknown[] = [];
    for (let hour = 0; hour < 6; hour += 1) {
      const answer = await ask(body.id);
      expect([answer.http, answer.body.at]).toEqual([200, server.clock.now().toISOString()]);
      turns.push(answer.body.individual);
      server.clock.advance(3600);
    }
    const [alice, bob] = [named("alice"), named("bob")];
    expect(turns).toEqual([null, alice, alice, bob, bob, alice]);
  });

  test("returns nobody without a rotation or plugin", async () => {
    for (const change of [{}, { plugin_slug: null, name: "Without" }]) {
      const { body } = await post(change);
      expect((await ask(body.id)).body.individual).toBeNull();
    }
  });

  test("answers 404 for an unknown service, and 400 for an invalid id", async () => {
    expect((await ask(999_999)).http).toBe(404);
    expect(await ask("x")).toMatchObject({ http: 400, body: { field: "service_id" } });
  });

  describe("with another plugin", () => {
    const paged = (pluginSlug = "pager", externalId: string | null = `P${n}`) =>
      insertRow(server.db, schema.service, { name: `Paged ${n}`, pluginSlug, externalId });

    test("returns the person it names, ours if known", async () => {
      const id = await paged();
      pager.answer({
        onCall: [
          () => ({ email: "Bob@example.com" }),
          () => ({ email: "zoe@example.com", name: "Zoe" }),
          () => null,
        ],
      });
      const asked = pager.calls.length;
      expect((await ask(id)).body.individual).toEqual(named("bob"));
      expect((await ask(id)).body.individual).toEqual({ id: null, name: "Zoe", email: "zoe@example.com" });
      expect((await ask(id)).body.individual).toBeNull();
      expect(pager.calls[asked]?.call).toMatchObject({
        service: { id, name: `Paged ${n}`, externalId: `P${n}` },
        at: server.clock.now().toISOString(),
      });
    });

    const fail = (message: string) => () => {
      throw new Error(message);
    };
    test.each([
      ["fails", fail("boom"), /^pager failed/],
      ["hangs", () => new Promise<never>(() => {}), /^pager did not answer within/],
      ["answers nonsense", () => ({ email: 7 }) as never, /^pager returned an (invalid answer|address)/],
      ["names no user", () => ({ email: "a@b..c" }), /^pager returned an (invalid answer|address)/],
    ])("answers 503 with the plugin's message when it %s", async (_, onCall, detail) => {
      pager.answer({ onCall });
      const answer = await ask(await paged());
      expect(answer).toMatchObject({ http: 503, body: { code: "unavailable" } });
      expect(answer.body.detail).toMatch(detail);
    });

    test("answers 503 when the plugin is no longer in use", async () => {
      expect(await ask(await paged("gone"))).toMatchObject({
        http: 503,
        body: { detail: "gone is not enabled: SVC_PLUGIN_PARTICIPANT" },
      });
    });
  });
});
