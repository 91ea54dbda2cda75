import { afterAll, beforeAll, expect, test } from "bun:test";
import { and, eq } from "drizzle-orm";
import {
  individual,
  participant,
  participantRole,
  recommendation,
  team,
} from "../../../drizzle/schema/index.ts";
import { fakeConversation, fakeParticipant } from "../../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../../plugins/fake/plugins.ts";
import { somebodyWaits } from "../../../tests/support/database/blocked.ts";
import { type FlowTest, rita, startFlowTest } from "../../../tests/support/domain/flow.ts";
import { individualOf } from "../../catalog/person/of_actor.ts";
import { leaveIncident } from "../participant/leave.ts";
import { runFlow } from "./run.ts";

let flow: FlowTest;
let ada: number;
let teamId: number;
beforeAll(async () => {
  flow = await startFlowTest();
  ada = await flow.individual("Ada");
  const stamps = { createdAt: flow.clock.now(), updatedAt: flow.clock.now() };
  const [row] = await flow.db
    .insert(team)
    .values({ name: "Storage", ...stamps })
    .returning();
  teamId = row!.id;
});
afterAll(() => flow[Symbol.asyncDispose]());

const because = (name: string) => [{ kind: "other" as const, name }];
const step = "reported:participants";

const rolesIn = async (incidentId: number) => {
  const rows = await flow.db
    .select({ email: individual.email, role: participantRole.role, leftAt: participant.leftAt })
    .from(participant)
    .innerJoin(individual, eq(individual.id, participant.individualId))
    .leftJoin(participantRole, eq(participantRole.participantId, participant.id))
    .where(eq(participant.incidentId, incidentId))
    .orderBy(participant.id, participantRole.id);
  return rows.map(({ email, role, leftAt }) => `${email} ${leftAt ? "left" : role}`);
};

const reasonsIn = async (incidentId: number) => {
  const rows = await flow.db
    .select()
    .from(recommendation)
    .where(eq(recommendation.incidentId, incidentId))
    .orderBy(recommendation.id);
  return rows.map(({ individualId, teamId: ofTeam, pluginSlug, reasons }) => ({
    individualId,
    teamId: ofTeam,
    pluginSlug,
    reasons: reasons.map(({ name }) => name),
  }));
};

test("proposed people participate, and the reasons are kept; a proposed team is on the timeline", async () => {
  using fake = fakeParticipant({
    resolve: () => [
      { individual: { id: ada }, reasons: because("knows disks") },
      { individual: { email: "Bob@EXAMPLE.com", name: "Bob\n Stone" }, reasons: because("on call") },
      { individual: { email: "rita@example.com" }, reasons: because("was there") },
      { team: { id: teamId }, reasons: because("owns it") },
    ],
  });
  const plugins = pluginsOf(fake);
  const id = await flow.report(plugins);
  await runFlow(flow.context(plugins), id);
  // Existing participants keep their roles.
  expect(await rolesIn(id)).toEqual([
    "rita@example.com reporter",
    "rita@example.com commander",
    "ada@example.com participant",
    "bob@example.com participant",
  ]);
  const [bob] = await flow.db.select().from(individual).where(eq(individual.email, "bob@example.com"));
  expect(bob?.name).toBe("Bob Stone");
  expect(await reasonsIn(id)).toMatchObject([
    { individualId: ada, reasons: ["knows disks"], pluginSlug: "fake-participant" },
    { individualId: bob!.id, reasons: ["on call"] },
    { individualId: expect.any(Number), reasons: ["was there"] },
    { teamId, reasons: ["owns it"] },
  ]);
  expect(await flow.told(id, "participant.joined", "team.proposed", "step.done")).toEqual([
    "participant.joined fake-participant: Ada joined",
    "participant.joined fake-participant: Bob Stone joined",
    "team.proposed fake-participant: Team proposed: Storage",
    "step.done core: People proposed: 3; teams: 1",
    "step.done core: Commander: rita",
  ]);
  expect(fake.to("resolve")).toMatchObject([
    { incident: { id, title: "Disk full" }, key: expect.any(String) },
  ]);
});

test("if one plugin fails, the others' proposals are kept; a retry with the same key adds nothing", async () => {
  using good = fakeParticipant(
    { resolve: () => [{ individual: { id: ada }, reasons: because("x") }] },
    { slug: "good" },
  );
  using bad = fakeParticipant(
    {
      resolve: [
        () => {
          throw Object.assign(new Error("hunter2"), { detail: "the directory is down" });
        },
        () => [{ individual: { email: "carol@example.com" }, reasons: because("y") }],
      ],
    },
    { slug: "bad" },
  );
  const plugins = pluginsOf(bad, good);
  const id = await flow.report(plugins);
  await runFlow(flow.context(plugins), id);
  expect(await flow.step(id, step)).toMatchObject({
    state: "Failed",
    attempts: 1,
    error: "bad failed: the directory is down",
  });
  expect(await rolesIn(id)).toContain("ada@example.com participant");
  flow.clock.advance(30);
  await runFlow(flow.context(plugins), id);
  expect(await flow.step(id, step)).toMatchObject({ state: "Done", attempts: 2, error: null });
  expect(await rolesIn(id)).toContain("carol@example.com participant");
  expect(await flow.told(id, "participant.joined")).toHaveLength(2);
  const keys = [...good.to("resolve"), ...bad.to("resolve")].map(({ key }) => key);
  expect(keys).toHaveLength(4);
  expect(new Set(keys).size).toBe(1);
});

const nonsense = [
  [
    "an individual that does not exist",
    { individual: { id: 999_999 }, reasons: [] },
    "an individual that does not exist",
  ],
  ["a team that does not exist", { team: { id: 999_999 }, reasons: [] }, "a team that does not exist"],
  [
    "an address of look-alikes",
    { individual: { email: "\u212Aate@example.com" }, reasons: [] },
    "an individual without a valid name or address",
  ],
  [
    "a name with half a pair",
    { individual: { email: "kate@example.com", name: "\ud800" }, reasons: [] },
    "an individual without a valid name or address",
  ],
] as const;
test.each(nonsense)("%s fails the plugin's step, and the rest is kept", async (_, one, what) => {
  using fake = fakeParticipant({
    resolve: () => [one, { individual: { id: ada }, reasons: because("x") }] as never,
  });
  const plugins = pluginsOf(fake);
  const id = await flow.report(plugins);
  await runFlow(flow.context(plugins), id);
  expect(await flow.step(id, step)).toMatchObject({
    state: "Failed",
    error: `fake-participant proposed ${what}`,
  });
  expect(await rolesIn(id)).toContain("ada@example.com participant");
});

test.each([
  ["an individual", individual, (id: number) => ({ individual: { id } })],
  ["a team", team, (id: number) => ({ team: { id } })],
] as const)("%s that an admin is deleting counts as missing", async (what, table, proposal) => {
  const stamps = { createdAt: flow.clock.now(), updatedAt: flow.clock.now() };
  const values = { name: what, email: "gone@example.com", ...stamps };
  const [gone] = await flow.db.insert(table).values(values).returning();
  using fake = fakeParticipant({ resolve: () => [{ ...proposal(gone!.id), reasons: because("x") }] });
  const plugins = pluginsOf(fake);
  const id = await flow.report(plugins);
  let run: Promise<void> | undefined;
  await flow.db.transaction(async (tx) => {
    await tx.delete(table).where(eq(table.id, gone!.id));
    run = runFlow(flow.context(plugins), id);
    await somebodyWaits(flow.db);
  });
  await run;
  expect(await flow.step(id, step)).toMatchObject({
    error: `fake-participant proposed ${what} that does not exist`,
  });
});

test("people named with different spellings in two answers are created in one order", async () => {
  const names = ["Zoe@example.com", "emil@example.com"];
  using fake = fakeParticipant({
    resolve: () => names.map((email) => ({ individual: { email }, reasons: because("x") })),
  });
  const plugins = pluginsOf(fake);
  const id = await flow.report(plugins);
  const at = flow.clock.now();
  let run: Promise<void> | undefined;
  // The other answer's work, half of it before this one.
  await flow.db.transaction(async (tx) => {
    await individualOf(tx, { user: "emil@example.com" }, at);
    run = runFlow(flow.context(plugins), id);
    await somebodyWaits(flow.db);
    await individualOf(tx, { user: "zoe@example.com" }, at);
  });
  await run;
  expect(await flow.step(id, step)).toMatchObject({ state: "Done", error: null });
});

test("a person who has left is not brought back when the step runs again", async () => {
  using fake = fakeParticipant({ resolve: () => [{ individual: { id: ada }, reasons: because("x") }] });
  const plugins = pluginsOf(fake);
  const context = flow.context(plugins);
  const id = await flow.report(plugins);
  await runFlow(context, id);
  const ofAda = and(eq(participant.incidentId, id), eq(participant.individualId, ada));
  const [row] = await flow.db.select().from(participant).where(ofAda);
  await leaveIncident(context, rita, { incidentId: id, participantId: row!.id });
  await flow.again(id, step);
  await runFlow(context, id);
  expect(fake.to("resolve")).toHaveLength(2);
  expect(await flow.db.select().from(participant).where(ofAda)).toHaveLength(1);
});

test("proposed people are added to the conversation once, even if it exists already", async () => {
  using people = fakeParticipant({
    resolve: [
      () => [{ individual: { id: ada }, reasons: [] }],
      () => [{ individual: { email: "dora@example.com" }, reasons: [] }],
    ],
  });
  const nothing = () => {};
  using chat = fakeConversation({ create: () => ({}), add: nothing, send: nothing });
  const plugins = pluginsOf(people, chat);
  const id = await flow.report(plugins);
  await runFlow(flow.context(plugins), id);
  const added = () => chat.to("add").map((call) => call.people.map(({ email }) => email));
  expect(added()).toEqual([["rita@example.com", "ada@example.com"]]);
  expect(Object.keys(await flow.states(id))).not.toContain("joined:conversation:fake-conversation");
  await flow.again(id, step);
  await runFlow(flow.context(plugins), id);
  expect(added().slice(1)).toEqual([["rita@example.com", "ada@example.com", "dora@example.com"]]);
  expect(await flow.states(id)).toMatchObject({ "joined:conversation:fake-conversation": "Done" });
  expect(chat.to("send")).toHaveLength(1);
});
