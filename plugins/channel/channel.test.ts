import { afterAll, beforeAll, expect, test } from "bun:test";
import { asc, eq } from "drizzle-orm";
import { callPlugin } from "../../core/plugin/call.ts";
import type { IncidentFacts } from "../../core/plugin.ts";
import { conversation, conversationMessage, incident } from "../../drizzle/schema/index.ts";
import { type IncidentIds, insertIncident } from "../../tests/support/domain/incident.ts";
import { type PluginTest, startPluginTest } from "../../tests/support/domain/plugins.ts";

let its: PluginTest;
let ids: IncidentIds;
let facts: IncidentFacts;
beforeAll(async () => {
  its = await startPluginTest();
  ids = await insertIncident(its.context.db, its.context.clock.now());
  await its.context.db.delete(conversationMessage);
  facts = await its.factsOf(ids.incidentId);
});
afterAll(() => its[Symbol.asyncDispose]());

const channel = () => its.plugins.ofType("conversation")[0]!;
const send = (subject: string, key?: string) =>
  callPlugin(
    channel(),
    "send",
    { conversation: { incident: facts }, message: { subject, text: "*now*" } },
    { key },
  );
const said = () => its.context.db.select().from(conversationMessage).orderBy(asc(conversationMessage.id));

test("create and join need no work", async () => {
  const people = [{ id: ids.bob, name: "bob", email: "bob@example.com" }];
  expect(await callPlugin(channel(), "create", { incident: facts })).toEqual({ ok: true, value: {} });
  for (const done of [
    await callPlugin(channel(), "add", { conversation: { incident: facts }, people }),
    await callPlugin(channel(), "archive", { conversation: { incident: facts } }),
  ]) {
    expect(done).toMatchObject({ ok: true });
  }
});

test("send posts as the service to everyone, direct only to one person", async () => {
  const person = { id: ids.bob, name: "bob", email: "bob@example.com" };
  expect(await send("INC-1 reported")).toMatchObject({ ok: true });
  const message = { subject: "Yours", text: "" };
  expect(await callPlugin(channel(), "direct", { person, message, incident: facts })).toMatchObject({
    ok: true,
  });
  expect(await said()).toMatchObject([
    {
      conversationId: ids.conversationId,
      authorId: null,
      recipientId: null,
      text: "INC-1 reported\n\n*now*",
    },
    { conversationId: ids.conversationId, authorId: null, recipientId: ids.bob, text: "Yours" },
  ]);
  const outside = await callPlugin(channel(), "direct", { person, message });
  expect(outside).toMatchObject({
    ok: false,
    detail: expect.stringContaining("this message has none"),
  });
});

test("a key posts its message once, even in twenty concurrent calls", async () => {
  const before = (await said()).length;
  const sent = await Promise.all(Array.from({ length: 20 }, () => send("once", "k1")));
  expect(sent.map(({ ok }) => ok)).not.toContain(false);
  await send("another", "k2");
  expect(await said()).toHaveLength(before + 2);
});

test("an archived channel refuses new messages, and accepts repeated ones", async () => {
  await send("early", "k3");
  const before = await said();
  await its.context.db
    .update(conversation)
    .set({ archivedAt: its.context.clock.now() })
    .where(eq(conversation.id, ids.conversationId));
  expect(await send("early", "k3")).toMatchObject({ ok: true });
  expect(await send("late", "k4")).toMatchObject({
    ok: false,
    detail: "channel failed: The channel of this incident is archived",
  });
  expect(await said()).toEqual(before);
});

test("fails for an incident without a channel", async () => {
  const { db, clock } = its.context;
  const at = clock.now();
  const [bare] = await db
    .insert(incident)
    .values({
      title: "Bare",
      description: "",
      incidentTypeId: ids.incidentTypeId,
      incidentPriorityId: ids.incidentPriorityId,
      reportedAt: at,
      createdAt: at,
      updatedAt: at,
    })
    .returning();
  const call = {
    conversation: { incident: { ...facts, id: bare!.id } },
    message: { subject: "s", text: "t" },
  };
  expect(await callPlugin(channel(), "send", call)).toMatchObject({
    ok: false,
    detail: expect.stringContaining("no channel"),
  });
});
