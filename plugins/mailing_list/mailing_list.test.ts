import { afterAll, beforeAll, expect, test } from "bun:test";
import { callPlugin } from "../../core/plugin/call.ts";
import type { IncidentFacts } from "../../core/plugin.ts";
import { participantGroup, team } from "../../drizzle/schema/index.ts";
import { type IncidentIds, insertIncident } from "../../tests/support/domain/incident.ts";
import { type PluginTest, startPluginTest } from "../../tests/support/domain/plugins.ts";

let its: PluginTest;
let ids: IncidentIds;
let incident: IncidentFacts;
beforeAll(async () => {
  its = await startPluginTest();
  ids = await insertIncident(its.context.db, its.context.clock.now());
  incident = await its.factsOf(ids.incidentId);
});
afterAll(() => its[Symbol.asyncDispose]());

const list = () => its.plugins.ofType("participant_group")[0]!;
const members = () => callPlugin(list(), "members", { group: { incident } });
const alice = { id: 0, name: "alice", email: "alice@example.com" };

test("add fails if the group was not created", async () => {
  expect(await callPlugin(list(), "create", { incident, name: "inc-1" })).toEqual({ ok: true, value: {} });
  const people = [{ ...alice, id: ids.alice }];
  expect(await callPlugin(list(), "add", { group: { incident }, people, teams: [] })).toMatchObject({
    ok: false,
    detail: "mailing-list failed: This incident has no mailing list",
  });
});

test("people and teams are added once and removed; teams without an address get no mail", async () => {
  const { db, clock } = its.context;
  const at = clock.now();
  const group = { incidentId: ids.incidentId, pluginSlug: "mailing-list", name: "inc-1", createdAt: at };
  await db.insert(participantGroup).values(group);
  const values = { name: "Database", email: "database@example.com", createdAt: at, updatedAt: at };
  const [reached] = await db.insert(team).values(values).returning();
  const people = [
    { ...alice, id: ids.alice },
    { id: ids.bob, name: "bob", email: "bob@example.com" },
  ];
  const teams = [
    { id: ids.teamId, name: "Storage" },
    { id: reached!.id, name: "Database" },
  ];
  for (let times = 0; times < 2; times += 1) {
    expect(await callPlugin(list(), "add", { group: { incident }, people, teams })).toMatchObject({
      ok: true,
    });
    expect(await members()).toEqual({
      ok: true,
      value: [
        { email: "alice@example.com", name: "alice" },
        { email: "bob@example.com", name: "bob" },
        { email: "database@example.com", name: "Database" },
      ],
    });
  }
  await callPlugin(list(), "remove", { group: { incident }, people: people.slice(0, 1), teams });
  expect(await members()).toMatchObject({ value: [{ email: "bob@example.com" }] });
  const nobody = await callPlugin(list(), "remove", { group: { incident }, people: [], teams: [] });
  expect(nobody).toMatchObject({ ok: true });
  expect(await members()).toMatchObject({ value: [{ email: "bob@example.com" }] });
});
