import { expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { conversation, flowStep, participantGroup } from "../../drizzle/schema/index.ts";
import { fakeChat, fakeConversation, fakeParticipantGroup } from "../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../plugins/fake/plugins.ts";
import { insertIncident } from "../../tests/support/domain/incident.ts";
import { insertEmptyIncident } from "../../tests/support/http/participants.ts";
import { personOf } from "../../tests/support/http/people.ts";
import { startTestServer } from "../../tests/support/http/server.ts";
import { until } from "../../tests/support/process/until.ts";

test("people who join are added to conversations and groups, and removed when they leave", async () => {
  const chat = fakeChat({ add: () => undefined, remove: () => undefined });
  const group = fakeParticipantGroup({ add: () => undefined, remove: () => undefined });
  const plugins = pluginsOf(chat, group);
  await using server = await startTestServer({}, plugins);
  const { db, clock } = server;
  const at = clock.now();
  const ids = await insertIncident(db, at);
  const incidentId = await insertEmptyIncident(db, ids, at);
  const of = { incidentId, externalId: "1", createdAt: at };
  await db.insert(conversation).values({ ...of, pluginSlug: chat.plugin.slug });
  await db.insert(participantGroup).values({ ...of, pluginSlug: group.plugin.slug, name: "inc" });
  const done = { incidentId, state: "Done" as const, finishedAt: at };
  await db.insert(flowStep).values([
    { ...done, step: `reported:conversation:${chat.plugin.slug}` },
    { ...done, step: `reported:group:${group.plugin.slug}` },
  ]);
  const admin = await personOf(server, "root@example.com", ["admin"]);
  const path = `/incidents/${incidentId}/participants`;
  const emails = (calls: { people: readonly { email: string }[] }[]) =>
    calls.map(({ people }) => people.map(({ email }) => email).join(" "));

  const first = await admin.call("POST", path, { email: "ada" }, { "idempotency-key": "ada" });
  expect(first.http).toBe(201);
  // On a busy machine, the answer comes earlier.
  await until("both to be told of ada", () => chat.calls.length + group.calls.length === 2);
  expect(emails(chat.to("add"))).toEqual(["ada@example.com"]);
  expect(emails(group.to("add"))).toEqual(["ada@example.com"]);

  // A role changes no membership.
  await admin.call("POST", `${path}/${first.body.id}/roles`, { role: "scribe" });
  await admin.call("POST", path, { email: "ada", roles: ["liaison"] });
  expect(chat.calls).toHaveLength(1);

  const second = await admin.call("POST", path, { email: "bob" });
  await until("both to be told of bob", () => chat.calls.length + group.calls.length === 4);
  expect(emails(group.to("add")).at(-1)).toContain("bob@example.com");
  await admin.call("POST", `${path}/${first.body.id}/leave`);
  await until("both to let ada go", () => group.to("remove").length + chat.to("remove").length === 2);
  expect(emails(group.to("remove"))).toEqual(["ada@example.com"]);
  expect(emails(chat.to("remove"))).toEqual(["ada@example.com"]);
  expect(second.http).toBe(201);
  plugins.assertExpected();
});

test("a plugin that hangs does not delay joining", async () => {
  const { promise: never } = Promise.withResolvers<undefined>();
  const chat = fakeConversation({ add: () => never }, { timeoutMilliseconds: 60_000 });
  await using server = await startTestServer({}, pluginsOf(chat));
  const { db, clock } = server;
  const at = clock.now();
  const incidentId = await insertEmptyIncident(db, await insertIncident(db, at), at);
  const { slug } = chat.plugin;
  await db.insert(conversation).values({ incidentId, externalId: "1", createdAt: at, pluginSlug: slug });
  await db
    .insert(flowStep)
    .values({ incidentId, state: "Done", finishedAt: at, step: `reported:conversation:${slug}` });
  const member = await personOf(server, "carol@example.com");
  const { http } = await member.call("POST", `/incidents/${incidentId}/participants`, { email: "ada" });
  expect(http).toBe(201);
  await until("it to be asked", () => chat.to("add").length === 1);
});

test("a participant who left can be deleted once the group has removed them", async () => {
  let down = true;
  const remove = () => {
    if (down) throw new Error("down");
  };
  const group = fakeParticipantGroup({ add: () => undefined, remove });
  await using server = await startTestServer({}, pluginsOf(group));
  const { db, clock } = server;
  const at = clock.now();
  const incidentId = await insertEmptyIncident(db, await insertIncident(db, at), at);
  const { slug } = group.plugin;
  await db
    .insert(participantGroup)
    .values({ incidentId, externalId: "1", createdAt: at, pluginSlug: slug, name: "inc" });
  await db
    .insert(flowStep)
    .values({ incidentId, state: "Done", finishedAt: at, step: `reported:group:${slug}` });
  const admin = await personOf(server, "root@example.com", ["admin"]);
  const { body } = await admin.call("POST", `/incidents/${incidentId}/participants`, { email: "ada" });
  const path = `/incidents/${incidentId}/participants/${body.id}`;
  expect((await admin.call("POST", `${path}/leave`)).http).toBe(200);
  expect(await admin.call("DELETE", path)).toMatchObject({ http: 409, body: { code: "conflict" } });
  const failed = async () => (await db.$count(flowStep, eq(flowStep.state, "Failed"))) === 1;
  await until("the group to refuse", failed);
  down = false;
  expect((await admin.call("POST", `/incidents/${incidentId}/retry`, {})).http).toBe(200);
  await until("the group to let them go", async () => (await admin.call("DELETE", path)).http === 204);
  expect(group.to("remove").map(({ people }) => people.map(({ email }) => email))).toEqual([
    ["ada@example.com"],
    ["ada@example.com"],
  ]);
});

test("a participant who left can be deleted once the conversation has removed them", async () => {
  let down = true;
  const remove = () => {
    if (down) throw new Error("down");
  };
  const chat = fakeChat({ add: () => undefined, remove });
  await using server = await startTestServer({}, pluginsOf(chat));
  const { db, clock } = server;
  const at = clock.now();
  const incidentId = await insertEmptyIncident(db, await insertIncident(db, at), at);
  const { slug } = chat.plugin;
  await db.insert(conversation).values({ incidentId, externalId: "1", createdAt: at, pluginSlug: slug });
  await db
    .insert(flowStep)
    .values({ incidentId, state: "Done", finishedAt: at, step: `reported:conversation:${slug}` });
  const admin = await personOf(server, "root@example.com", ["admin"]);
  const { body } = await admin.call("POST", `/incidents/${incidentId}/participants`, { email: "ada" });
  const path = `/incidents/${incidentId}/participants/${body.id}`;
  expect((await admin.call("POST", `${path}/leave`)).http).toBe(200);
  expect(await admin.call("DELETE", path)).toMatchObject({ http: 409, body: { code: "conflict" } });
  const failed = async () => (await db.$count(flowStep, eq(flowStep.state, "Failed"))) === 1;
  await until("the conversation to refuse", failed);
  down = false;
  expect((await admin.call("POST", `/incidents/${incidentId}/retry`, {})).http).toBe(200);
  await until("the conversation to let them go", async () => (await admin.call("DELETE", path)).http === 204);
  expect(chat.to("remove").map(({ people }) => people.map(({ email }) => email))).toEqual([
    ["ada@example.com"],
    ["ada@example.com"],
  ]);
});
