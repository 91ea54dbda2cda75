import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import {
  conversation,
  delivery,
  incident,
  individual,
  participantGroup,
  team,
} from "../../../drizzle/schema/index.ts";
import { Refused } from "../../../platform/errors.ts";
import {
  fakeChat,
  fakeConversation,
  fakeMailing,
  fakeParticipant,
  fakeParticipantGroup,
} from "../../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../../plugins/fake/plugins.ts";
import { type FlowTest, rita, startFlowTest } from "../../../tests/support/domain/flow.ts";
import type { Plugins } from "../../plugin/choose.ts";
import { planClosed, planJoined } from "../flow/plan.ts";
import { retryFlow } from "../flow/retry.ts";
import { lockIncident } from "../incident/lock.ts";
import { join } from "../participant/join.ts";
import { leaveIncident } from "../participant/leave.ts";
import { runFlow } from "./run.ts";

let flow: FlowTest;
let teamId: number;
beforeAll(async () => {
  flow = await startFlowTest();
  const stamps = { createdAt: flow.clock.now(), updatedAt: flow.clock.now() };
  const values = { name: "Storage", email: "storage@example.com", ...stamps };
  const [row] = await flow.db.insert(team).values(values).returning();
  teamId = row!.id;
});
afterAll(() => flow[Symbol.asyncDispose]());

const nothing = () => {};
const hanging = () => new Promise<never>(() => {});
const emails = (people: readonly { email: string }[]) => people.map(({ email }) => email);

async function reported(plugins: Plugins): Promise<number> {
  const id = await flow.report(plugins);
  await runFlow(flow.context(plugins), id);
  return id;
}

/** Somebody joins or leaves, as through the API. */
async function change(plugins: Plugins, incidentId: number, email: string, what: "joins" | "leaves") {
  const at = flow.clock.now();
  const values = { name: email, email, createdAt: at, updatedAt: at };
  await flow.db.insert(individual).values(values).onConflictDoNothing();
  const [person] = await flow.db.select().from(individual).where(eq(individual.email, email));
  const { participantId } = await flow.db.transaction(async (tx) => {
    await lockIncident(tx, "worker", incidentId);
    await planJoined(tx, { incidentId, at, plugins });
    return join(tx, { incidentId, at, actor: rita.user, individualId: person!.id, roles: [] });
  });
  if (what === "leaves") await leaveIncident(flow.context(plugins), rita, { incidentId, participantId });
  await runFlow(flow.context(plugins), incidentId);
}

async function close(plugins: Plugins, incidentId: number) {
  const at = flow.clock.now();
  await flow.db.transaction(async (tx) => {
    await tx
      .update(incident)
      .set({ status: "Closed", stableAt: at, closedAt: at })
      .where(eq(incident.id, incidentId));
    await planClosed(tx, { incidentId, at, plugins });
  });
}

describe("a conversation", () => {
  const step = "reported:conversation:fake-conversation";
  const rowsOf = (id: number) => flow.db.select().from(conversation).where(eq(conversation.incidentId, id));

  test("is created, gets its people and a welcome, once each", async () => {
    using fake = fakeConversation({
      create: () => ({ externalId: "C1", weblink: "https://chat.example.com/C1" }),
      add: nothing,
      send: nothing,
    });
    const id = await reported(pluginsOf(fake));
    expect(await rowsOf(id)).toMatchObject([{ externalId: "C1", weblink: "https://chat.example.com/C1" }]);
    const conversationFacts = { externalId: "C1", incident: { id }, weblink: "https://chat.example.com/C1" };
    expect(fake.to("add")).toMatchObject([
      { conversation: conversationFacts, people: [{ email: "rita@example.com" }] },
    ]);
    const { message } = fake.to("send")[0]!;
    expect(message.subject).toMatch(/^INC-\d+: Disk full$/);
    expect(message.text).toContain("Commander: rita");
    expect(message.text).toContain(`https://svc.example.com/incidents/${id}`);
    expect(fake.calls.map(({ method }) => method)).toEqual(["create", "add", "send"]);
    expect((await flow.told(id, "conversation.created", "step.done")).toSorted()).toEqual([
      "conversation.created fake-conversation: Conversation: https://chat.example.com/C1",
      "step.done core: Commander: rita",
      "step.done fake-conversation: Conversation opened",
    ]);
  });

  test.each([
    ["add", 2],
    ["send", 3],
  ] as const)("when it fails to %s, the next attempt continues with the same keys", async (method, calls) => {
    using fake = fakeConversation({ create: [() => ({})], add: nothing, send: nothing });
    fake.answer({ [method]: [() => Promise.reject(new Error("hunter2")), nothing] });
    const plugins = pluginsOf(fake);
    const id = await reported(plugins);
    expect(await flow.step(id, step)).toMatchObject({
      state: "Failed",
      error: "fake-conversation failed: Error",
    });
    expect(fake.calls).toHaveLength(calls);
    flow.clock.advance(30);
    await runFlow(flow.context(plugins), id);
    expect(await flow.step(id, step)).toMatchObject({ state: "Done", attempts: 2 });
    const [first, second] = fake.to(method);
    expect(second?.key).toBe(first!.key);
    expect(await rowsOf(id)).toHaveLength(1);
  });

  test("of a plugin with recipients gets its welcome from the outbox, once", async () => {
    using mail = fakeMailing({ create: () => ({}), add: nothing }, { slug: "mail" });
    using channel = fakeConversation({ create: () => ({}), add: nothing, send: nothing });
    const plugins = pluginsOf(channel, mail);
    const id = await reported(plugins);
    await flow.again(id, "reported:conversation:mail");
    await runFlow(flow.context(plugins), id);
    expect(await flow.step(id, "reported:conversation:mail")).toMatchObject({ state: "Done" });
    expect([mail.to("send").length, channel.to("send").length]).toEqual([0, 1]);
    const waiting = await flow.db.select().from(delivery).where(eq(delivery.incidentId, id));
    expect(waiting).toMatchObject([
      {
        key: `incident-welcome/incident-${id}/conversation/mail`,
        state: "Queued",
        recipient: null,
        text: channel.to("send")[0]!.message.text,
      },
    ]);
  });

  test("that is refused permanently is retried only when a person asks for it", async () => {
    using fake = fakeConversation({ create: () => Promise.reject(new Refused("no such team")) });
    const plugins = pluginsOf(fake);
    const id = await reported(plugins);
    const error = "fake-conversation failed: no such team";
    expect(await flow.step(id, step)).toMatchObject({ state: "Failed", attempts: 1, dueAt: null, error });
    flow.clock.advance(86_400);
    await runFlow(flow.context(plugins), id);
    expect(fake.calls).toHaveLength(1);
    await retryFlow(flow.context(plugins), rita, { incidentId: id });
    await runFlow(flow.context(plugins), id);
    expect(fake.calls).toHaveLength(2);
    expect(await flow.told(id, "step.failed")).toEqual([`step.failed fake-conversation: ${error}`]);
  });

  test("that belongs to another incident is refused", async () => {
    using fake = fakeConversation({ create: () => ({ externalId: "C2" }), add: nothing, send: nothing });
    const first = await reported(pluginsOf(fake));
    const second = await reported(pluginsOf(fake));
    expect(await rowsOf(first)).toHaveLength(1);
    expect(await flow.step(second, step)).toMatchObject({
      state: "Failed",
      error: "fake-conversation returned a resource of another incident",
    });
  });

  test("whose plugin is no longer enabled fails with that reason", async () => {
    using fake = fakeConversation({ create: hanging }, { timeoutMilliseconds: 30 });
    const id = await reported(pluginsOf(fake));
    flow.clock.advance(30);
    await runFlow(flow.context(pluginsOf()), id);
    expect(await flow.step(id, step)).toMatchObject({
      state: "Failed",
      error: "fake-conversation is no longer enabled",
    });
  });

  test("gets people who join later, until it is archived with the incident", async () => {
    using fake = fakeConversation({ create: () => ({}), add: nothing, send: nothing, archive: nothing });
    const plugins = pluginsOf(fake);
    const id = await reported(plugins);
    await change(plugins, id, "una@example.com", "joins");
    expect(emails(fake.to("add").at(-1)!.people)).toEqual(["rita@example.com", "una@example.com"]);
    await close(plugins, id);
    await runFlow(flow.context(plugins), id);
    expect(fake.to("archive")).toHaveLength(1);
    expect((await rowsOf(id)).map(({ archivedAt }) => archivedAt)).toEqual([flow.clock.now()]);
    await change(plugins, id, "vera@example.com", "joins");
    await flow.again(id, "closed:conversation:fake-conversation");
    await runFlow(flow.context(plugins), id);
    expect([fake.to("add").length, fake.to("archive").length]).toEqual([2, 1]);
  });

  test("follows people who leave and come back, with a new key each time", async () => {
    using fake = fakeChat({ create: () => ({}), add: nothing, remove: nothing, send: nothing });
    const plugins = pluginsOf(fake);
    const id = await reported(plugins);
    await change(plugins, id, "una@example.com", "joins");
    await change(plugins, id, "una@example.com", "leaves");
    expect(fake.to("remove").map(({ people }) => emails(people))).toEqual([["una@example.com"]]);
    await change(plugins, id, "una@example.com", "joins");
    await change(plugins, id, "una@example.com", "leaves");
    expect(emails(fake.to("add").at(-1)!.people)).toEqual(["rita@example.com"]);
    const keys = fake.to("remove").map(({ key }) => key);
    expect([keys.length, new Set(keys).size]).toEqual([2, 2]);
  });

  test("that is archived still loses people who leave", async () => {
    using fake = fakeChat({
      create: () => ({}),
      add: nothing,
      remove: nothing,
      send: nothing,
      archive: nothing,
    });
    const plugins = pluginsOf(fake);
    const id = await reported(plugins);
    await change(plugins, id, "una@example.com", "joins");
    await close(plugins, id);
    await runFlow(flow.context(plugins), id);
    await change(plugins, id, "una@example.com", "leaves");
    expect(emails(fake.to("remove")[0]!.people)).toEqual(["una@example.com"]);
  });

  test("whose plugin fails to remove somebody is retried with the same key", async () => {
    using fake = fakeChat({ create: () => ({}), add: nothing, send: nothing });
    fake.answer({ remove: [() => Promise.reject(new Error("hunter2")), nothing] });
    const plugins = pluginsOf(fake);
    const id = await reported(plugins);
    await change(plugins, id, "una@example.com", "joins");
    await change(plugins, id, "una@example.com", "leaves");
    const following = "joined:conversation:fake-conversation";
    expect(await flow.step(id, following)).toMatchObject({ state: "Failed" });
    flow.clock.advance(30);
    await runFlow(flow.context(plugins), id);
    expect(await flow.step(id, following)).toMatchObject({ state: "Done" });
    const keys = fake.to("remove").map(({ key }) => key);
    expect([keys.length, new Set(keys).size]).toEqual([2, 1]);
  });

  test("whose plugin cannot remove people says so on the timeline", async () => {
    using fake = fakeConversation({ create: () => ({}), add: nothing, send: nothing });
    const plugins = pluginsOf(fake);
    const id = await reported(plugins);
    await change(plugins, id, "una@example.com", "leaves");
    expect((await flow.told(id, "step.done")).at(-1)).toBe(
      "step.done fake-conversation: fake-conversation cannot remove people from a conversation: those who left may still read it",
    );
  });

  test("that is created after the incident was closed is still archived", async () => {
    const create = async () => {
      await close(plugins, id);
      await runFlow(flow.context(plugins), id);
      return {};
    };
    using fake = fakeConversation({ create, add: nothing, send: nothing, archive: nothing });
    const plugins = pluginsOf(fake);
    const id = await flow.report(plugins);
    await runFlow(flow.context(plugins), id);
    expect(fake.calls.map(({ method }) => method)).toEqual(["create", "add", "send", "archive"]);
    expect(await rowsOf(id)).toMatchObject([{ archivedAt: flow.clock.now() }]);
  });

  test("that is archived before its welcome is left alone", async () => {
    using fake = fakeConversation({ create: () => ({}), add: nothing, archive: nothing });
    fake.answer({ send: [() => Promise.reject(new Error("hunter2"))] });
    const plugins = pluginsOf(fake);
    const id = await reported(plugins);
    await close(plugins, id);
    await runFlow(flow.context(plugins), id);
    flow.clock.advance(30);
    await runFlow(flow.context(plugins), id);
    expect(fake.calls.map(({ method }) => method)).toEqual(["create", "add", "send", "archive"]);
    expect(await flow.step(id, step)).toMatchObject({ state: "Done", attempts: 2 });
  });

  test("is not archived if the incident was reopened meanwhile", async () => {
    using fake = fakeConversation({ create: () => ({}), add: nothing, send: nothing });
    const plugins = pluginsOf(fake);
    const id = await reported(plugins);
    await close(plugins, id);
    const reopened = { status: "Active" as const, stableAt: null, closedAt: null };
    await flow.db.update(incident).set(reopened).where(eq(incident.id, id));
    await runFlow(flow.context(plugins), id);
    expect(fake.to("archive")).toEqual([]);
    expect(await flow.states(id)).toMatchObject({ "closed:conversation:fake-conversation": "Done" });
  });

  test("of a plugin that was selected later has no step, and nobody is added", async () => {
    const id = await reported(pluginsOf());
    using fake = fakeConversation();
    await change(pluginsOf(fake), id, "una@example.com", "joins");
    expect(Object.keys(await flow.states(id))).toEqual(["reported:commander"]);
  });
});

describe("a group", () => {
  const rowsOf = (id: number) =>
    flow.db.select().from(participantGroup).where(eq(participantGroup.incidentId, id));

  test("is created with the participants and the proposed teams", async () => {
    using people = fakeParticipant({ resolve: () => [{ team: { id: teamId }, reasons: [] }] });
    using fake = fakeParticipantGroup({
      create: ({ name }) => ({ email: `${name}@example.com` }),
      add: nothing,
    });
    const id = await reported(pluginsOf(people, fake));
    const [row] = await rowsOf(id);
    expect(row).toMatchObject({
      name: expect.stringMatching(/^inc-\d+$/),
      email: `${row?.name}@example.com`,
    });
    expect(fake.to("add")).toMatchObject([
      { people: [{ email: "rita@example.com" }], teams: [{ id: teamId, email: "storage@example.com" }] },
    ]);
    expect(await flow.told(id, "group.created")).toHaveLength(1);
  });

  test("follows people who join, leave and come back, with a new key each time", async () => {
    using fake = fakeParticipantGroup({
      create: () => ({ externalId: "G1" }),
      add: nothing,
      remove: nothing,
    });
    const plugins = pluginsOf(fake);
    const id = await reported(plugins);
    await change(plugins, id, "una@example.com", "joins");
    await change(plugins, id, "una@example.com", "leaves");
    expect(emails(fake.to("remove").at(-1)!.people)).toEqual(["una@example.com"]);
    await change(plugins, id, "una@example.com", "joins");
    expect(fake.to("remove")).toHaveLength(1);
    const added = fake.to("add");
    expect(added.map(({ people }) => emails(people).length)).toEqual([1, 2, 1, 2]);
    // The same people as before, but a new operation.
    expect(added[3]!.key).not.toBe(added[1]!.key);
  });
});
