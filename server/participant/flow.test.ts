import { expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { conversation, flowStep, participantGroup } from "../../drizzle/schema/index.ts";
import { fakeChat, fakeParticipantGroup } from "../../plugins/fake/fakes.ts";
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

test.each(["group", "conversation"])(
  "a participant who left can be deleted once the %s has removed them",
  async (what) => {
    let down = true;
    const remove = () => {
      if (down) throw new Error("down");
    };
    const answers = { add: () => undefined, remove };
    const fake = what === "group" ? fakeParticipantGroup(answers) : fakeChat(answers);
    await using server = await startTestServer({}, pluginsOf(fake));
    const { db, clock } = server;
    const at = clock.now();
    const incidentId = await insertEmptyIncident(db, await insertIncident(db, at), at);
    const { slug } = fake.plugin;
    const of = { incidentId, externalId: "1", createdAt: at, pluginSlug: slug };
    if (what === "group") await db.insert(participantGroup).values({ ...of, name: "inc" });
    else await db.insert(conversation).values(of);
    await db
      .insert(flowStep)
      .values({ incidentId, state: "Done", finishedAt: at, step: `reported:${what}:${slug}` });
    const admin = await personOf(server, "root@example.com", ["admin"]);
    const { body } = await admin.call("POST", `/incidents/${incidentId}/participants`, { email: "ada" });
    const path = `/incidents/${incidentId}/participants/${body.id}`;
    expect((await admin.call("POST", `${path}/leave`)).http).toBe(200);
    expect(await admin.call("DELETE", path)).toMatchObject({ http: 409, body: { code: "conflict" } });
    const failed = async () => (await db.$count(flowStep, eq(flowStep.state, "Failed"))) === 1;
    await until("the plugin to refuse", failed);
    down = false;
    expect((await admin.call("POST", `/incidents/${incidentId}/retry`, {})).http).toBe(200);
    await until("them to be removed", async () => (await admin.call("DELETE", path)).http === 204);
    const removed = fake.calls.filter(({ method }) => method === "remove").map(({ call }) => call);
    expect(removed).toMatchObject(Array(2).fill({ people: [{ email: "ada@example.com" }] }));
  },
);
