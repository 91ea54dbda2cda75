import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { callPlugin } from "../../core/plugin/call.ts";
import {
  individual,
  individualIncidentType,
  individualTerm,
  rotationMember,
  service,
  team,
  teamIncidentPriority,
  teamTerm,
} from "../../drizzle/schema/index.ts";
import { type IncidentIds, insertIncident } from "../../tests/support/domain/incident.ts";
import { type PluginTest, startPluginTest } from "../../tests/support/domain/plugins.ts";

let its: PluginTest;
let ids: IncidentIds;
beforeAll(async () => {
  its = await startPluginTest();
  ids = await insertIncident(its.context.db, its.context.clock.now());
});
afterAll(() => its[Symbol.asyncDispose]());

const roster = () => its.plugins.ofType("participant")[0]!;

test("proposes people and teams by type, priority and term, with reasons", async () => {
  const { db } = its.context;
  const { alice, bob, teamId, incidentTypeId, incidentPriorityId, termId } = ids;
  await db.insert(individualIncidentType).values({ individualId: bob, incidentTypeId });
  await db.insert(individualTerm).values([
    { individualId: bob, termId },
    { individualId: alice, termId },
  ]);
  await db.insert(teamIncidentPriority).values({ teamId, incidentPriorityId });
  const facts = { ...(await its.factsOf(ids.incidentId)), terms: [{ id: termId, text: "data loss" }] };
  const loss = { kind: "term", id: termId, name: "data loss" } as const;
  const outage = { kind: "incident_type", id: incidentTypeId, name: "Outage" } as const;
  const urgent = { kind: "incident_priority", id: incidentPriorityId, name: "Urgent" } as const;
  expect(await callPlugin(roster(), "resolve", { incident: facts })).toEqual({
    ok: true,
    value: [
      { individual: { id: bob }, reasons: [outage, loss] },
      { individual: { id: alice }, reasons: [loss] },
      { team: { id: teamId }, reasons: [urgent] },
    ],
  });
});

test("proposes no more than the maximum size of an answer", async () => {
  const { db, clock } = its.context;
  const stamps = { createdAt: clock.now(), updatedAt: clock.now() };
  const names = Array.from({ length: 300 }, (_, i) => `person${i}`);
  const people = await db
    .insert(individual)
    .values(names.map((name) => ({ name, email: `${name}@example.com`, ...stamps })))
    .returning();
  await db.insert(individualTerm).values(people.map(({ id }) => ({ individualId: id, termId: ids.termId })));
  const teams = await db
    .insert(team)
    .values(names.map((name) => ({ name, ...stamps })))
    .returning();
  await db.insert(teamTerm).values(teams.map(({ id }) => ({ teamId: id, termId: ids.termId })));
  const facts = { ...(await its.factsOf(ids.incidentId)), terms: [{ id: ids.termId, text: "data loss" }] };
  const outcome = await callPlugin(roster(), "resolve", { incident: facts });
  expect(outcome).toMatchObject({ ok: true });
  expect(outcome.ok && outcome.value).toHaveLength(500);
});

describe("on call", () => {
  const at = (hours: number) => new Date(its.context.clock.now().getTime() + hours * 3_600_000).toISOString();
  const asked = (hours: number, id = ids.serviceId) =>
    callPlugin(roster(), "onCall", { service: { id, name: "Storage on call" }, at: at(hours) });
  const alice = { ok: true as const, value: { email: "alice@example.com", name: "alice" } };

  test("is each member in turn, and nobody before the first turn", async () => {
    const { bob: individualId, serviceId } = ids;
    await its.context.db.insert(rotationMember).values({ serviceId, position: 5, individualId });
    expect(await asked(-1)).toEqual({ ok: true, value: null });
    expect(await asked(0)).toEqual(alice);
    expect(await asked(168)).toMatchObject({ value: { email: "bob@example.com" } });
    expect(await asked(336)).toEqual(alice);
  });

  test("is nobody for a service without a rotation, or a deleted one", async () => {
    const { db, clock } = its.context;
    const stamps = { createdAt: clock.now(), updatedAt: clock.now() };
    const [row] = await db
      .insert(service)
      .values({ name: "Empty", pluginSlug: "roster", ...stamps })
      .returning();
    expect(await asked(0, row!.id)).toEqual({ ok: true, value: null });
    expect(await asked(0, 999_999)).toEqual({ ok: true, value: null });
  });

  test("returns only the address of a person whose name is too long", async () => {
    await its.context.db
      .update(individual)
      .set({ name: "a".repeat(500) })
      .where(eq(individual.id, ids.alice));
    expect(await asked(0)).toEqual({ ok: true, value: { email: "alice@example.com" } });
  });
});
