import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { and, eq } from "drizzle-orm";
import {
  conversation,
  conversationMessage,
  delivery,
  flowStep,
  incident,
  incidentPriority,
  participant,
} from "../../../drizzle/schema/index.ts";
import { after } from "../../../platform/clock.ts";
import { minuteText } from "../../../platform/duration.ts";
import type { Fake } from "../../../plugins/fake/fake.ts";
import { fakeChat, fakeConversation, fakeMailing } from "../../../plugins/fake/fakes.ts";
import { type FakePlugins, pluginsOf } from "../../../plugins/fake/plugins.ts";
import { noteStatements } from "../../../tests/support/database/statements.ts";
import { attemptAll, endDeliveries } from "../../../tests/support/domain/delivery.ts";
import { type FlowTest, rita, startFlowTest } from "../../../tests/support/domain/flow.ts";
import { deliver } from "../../outbox/deliver.ts";
import { noteOnTimeline } from "../event/note.ts";
import { updateIncident } from "../lifecycle/update.ts";
import { assumeRole } from "../participant/assume.ts";
import { inviteParticipant } from "../participant/invite.ts";
import { writeReport } from "../report/write.ts";
import { runFlow } from "../steps/run.ts";
import { say } from "./say.ts";

// What people say and decide reaches every conversation plugin (docs/plugins.md).

let flow: FlowTest;
let lowId: number;
beforeAll(async () => {
  flow = await startFlowTest();
  const at = flow.clock.now();
  const low = { name: "Low", rank: 1, reminderHours: 8, createdAt: at, updatedAt: at };
  lowId = (await flow.db.insert(incidentPriority).values(low).returning())[0]!.id;
});
afterAll(() => flow[Symbol.asyncDispose]());

const nothing = () => {};
const made = { create: () => ({}), add: nothing };
let id: number;
let name: string;
let plugins: FakePlugins;
let channel: Fake<"conversation">;
let chat: Fake<"conversation">;
let mail: Fake<"conversation">;
beforeEach(async () => {
  channel = fakeChat({ ...made, send: nothing, archive: nothing }, { slug: "channel" });
  const all = { remove: nothing, restrict: nothing, archive: nothing, reopen: nothing };
  chat = fakeChat({ ...made, ...all, send: nothing, direct: nothing }, { slug: "chat" });
  mail = fakeMailing(
    { ...made, ...all, recipients: () => ["individual-1"], send: nothing, direct: nothing },
    { slug: "mail" },
  );
  plugins = pluginsOf(channel, chat, mail);
  id = await flow.report(plugins);
  name = (await row()).name;
  await runFlow(context(), id);
  await flow.db.delete(delivery);
});

const context = (of = plugins) => flow.context(of);
const row = async () => (await flow.db.select().from(incident).where(eq(incident.id, id)))[0]!;
const put = async (change: Partial<Awaited<ReturnType<typeof row>>>) =>
  updateIncident(context(), rita, { ...(await row()), ...change });
const invite = (email: string) =>
  inviteParticipant(context(), rita, { incidentId: id, email, roles: ["participant"] });
/** The waiting deliveries: plugin, recipient and text. */
async function waiting() {
  const rows = await flow.db
    .select()
    .from(delivery)
    .where(eq(delivery.incidentId, id))
    .orderBy(delivery.pluginSlug);
  return rows.map(({ pluginSlug, individualId, subject, text }) => ({
    pluginSlug,
    individualId,
    subject,
    text,
  }));
}
/** The lines that svc wrote into the channel. */
async function inChannel() {
  const rows = await flow.db
    .select({ text: conversationMessage.text, authorId: conversationMessage.authorId })
    .from(conversationMessage)
    .innerJoin(conversation, eq(conversation.id, conversationMessage.conversationId))
    .where(and(eq(conversation.incidentId, id), eq(conversation.pluginSlug, "channel")))
    .orderBy(conversationMessage.id);
  return rows.filter(({ authorId }) => authorId === null).map(({ text }) => text);
}
/** Attempts what is waiting for this plugin. */
async function attemptOf(slug: string) {
  return await attemptAll({ ...context(), db: flow.db }, eq(delivery.pluginSlug, slug));
}
const weblink = () => `https://svc.example.com/incidents/${id}`;
/** The same message through each of the two others. */
const byBoth = (message: { subject: string; text: string }, individualId: number | null = null) =>
  ["chat", "mail"].map((pluginSlug) => ({ pluginSlug, individualId, ...message }));

test("a message goes to every conversation except the channel in which it was written", async () => {
  await say(context(), rita, { incidentId: id, text: "It is `disk` *3*\nagain" });
  const message = { subject: `${name}: message from rita`, text: "It is \\`disk\\` \\*3\\*\nagain" };
  expect(await waiting()).toEqual(byBoth(message));
  expect(await inChannel()).toEqual([]);
  expect(await attemptAll(context())).toEqual(["done", "split"]);
  expect(chat.to("send").at(-1)).toMatchObject({ message, conversation: { incident: { id } } });
});

test("a message from a plugin is stored with its origin, and not sent back", async () => {
  const { id: said } = await say(context(), rita, { incidentId: id, text: "From there", origin: "chat" });
  expect((await waiting()).map(({ pluginSlug }) => pluginSlug)).toEqual(["mail"]);
  const [kept] = await flow.db.select().from(conversationMessage).where(eq(conversationMessage.id, said));
  expect(kept).toMatchObject({ origin: "chat", text: "From there" });
});

test("a direct message goes only to its recipient", async () => {
  const { individual } = await invite("una@example.com");
  await endDeliveries(flow.db, flow.clock.now());
  await flow.db.delete(delivery);
  await say(context(), rita, { incidentId: id, text: "Are you there?", recipientId: individual.id });
  const message = { subject: `${name}: direct message from rita`, text: "Are you there?" };
  expect(await waiting()).toEqual(byBoth(message, individual.id));
  expect(await attemptAll(context())).toEqual(["done", "done"]);
  expect(chat.to("direct")).toMatchObject([{ person: { email: "una@example.com" }, message }]);
});

test("a direct message of a Restricted incident does not reach somebody who has left", async () => {
  const { id: participantId, individual } = await invite("una@example.com");
  await put({ visibility: "Restricted" });
  await runFlow(context(), id);
  await flow.db.delete(delivery);
  await say(context(), rita, { incidentId: id, text: "Secret", recipientId: individual.id });
  const leftAt = flow.clock.now();
  await flow.db.update(participant).set({ leftAt }).where(eq(participant.id, participantId));
  expect(await attemptAll(context())).toEqual(["dead", "dead"]);
});

test("a status report goes to every conversation with the fields that were filled in", async () => {
  await writeReport(context(), rita, { incidentId: id, conditions: "Full", actions: "", needs: "Disks" });
  const message = {
    subject: `${name}: status report from rita`,
    text: [`**${name}: Disk full**`, "**Conditions:** Full", "**Needs:** Disks", weblink()].join("\n\n"),
  };
  expect(await waiting()).toEqual(byBoth(message));
  expect(await inChannel()).toEqual([`${message.subject}\n\n${message.text}`]);
});

test("a note goes to every conversation", async () => {
  await noteOnTimeline(context(), rita, { incidentId: id, description: "Rebooted *twice*" });
  const message = {
    subject: `${name}: note from rita`,
    text: [`**${name}: Disk full**`, "Rebooted \\*twice\\*", weblink()].join("\n\n"),
  };
  expect(await waiting()).toEqual(byBoth(message));
  expect(await inChannel()).toEqual([`${message.subject}\n\n${message.text}`]);
});

test("a backdated note names its time in every conversation", async () => {
  const at = after(flow.clock.now(), -600);
  await noteOnTimeline(context(), rita, { incidentId: id, description: "Rebooted", at });
  const line = `**Time:** ${minuteText(at, "UTC")}`;
  const [said] = await inChannel();
  expect(said).toStartWith(`${name}: note from rita\n\n${line}\n\n**${name}: Disk full**`);
  await attemptAll(context());
  await attemptAll(context());
  const notes = [...chat.to("send"), ...mail.to("send")].slice(-2);
  expect(notes.map(({ message, occurredAt }) => [message.text.split("\n")[0], occurredAt])).toEqual([
    [line, at.toISOString()],
    [line, at.toISOString()],
  ]);
});

describe("a change of", () => {
  const cases: [string, () => Partial<Awaited<ReturnType<typeof row>>>, string, string[]][] = [
    ["status", () => ({ status: "Stable" }), "Stable", ["rita changed the status from Active to Stable."]],
    [
      "priority",
      () => ({ incidentPriorityId: lowId }),
      "priority Low",
      ["rita changed the priority from High to Low."],
    ],
    [
      "visibility",
      () => ({ visibility: "Restricted" }),
      "Restricted",
      ["rita made the incident Restricted: only its participants and admins can read it."],
    ],
    [
      "several at once",
      () => ({ status: "Closed", incidentPriorityId: lowId, resolution: "More *disks*" }),
      "Closed, priority Low",
      [
        "rita changed the status from Active to Closed.",
        "**Resolution:** More \\*disks\\*",
        "rita changed the priority from High to Low.",
      ],
    ],
  ];
  test.each(cases)("%s goes to every conversation in one message", async (_, change, subject, lines) => {
    await put(change());
    const message = {
      subject: `${name}: ${subject}`,
      text: [`**${name}: Disk full**`, ...lines, weblink()].join("\n\n"),
    };
    expect(await waiting()).toEqual(byBoth(message));
    expect(await inChannel()).toEqual([`${message.subject}\n\n${message.text}`]);
  });

  test("visibility to Restricted is not announced where others can still read", async () => {
    using plain = fakeConversation({ ...made, send: nothing, archive: nothing }, { slug: "plain" });
    using four = pluginsOf(channel, chat, mail, plain);
    id = await flow.report(four);
    await runFlow(context(four), id);
    await endDeliveries(flow.db, flow.clock.now());
    await flow.db.delete(delivery);
    await updateIncident(context(four), rita, { ...(await row()), visibility: "Restricted" });
    expect((await waiting()).map(({ pluginSlug }) => pluginSlug)).toEqual(["chat", "mail"]);
  });

  test("title and description is not announced", async () => {
    await put({ title: "Disk full again", description: "" });
    expect(await waiting()).toEqual([]);
    expect(await inChannel()).toEqual([]);
  });

  test("commander goes to every conversation, naming the previous one", async () => {
    const { id: participantId } = await invite("una@example.com");
    await assumeRole(context(), rita, { incidentId: id, participantId, role: "commander" });
    const message = {
      subject: `${name}: una is the commander`,
      text: [`**${name}: Disk full**`, "una took over as commander from rita.", weblink()].join("\n\n"),
    };
    expect(await waiting()).toEqual(byBoth(message));
  });

  test("another role is not announced", async () => {
    const { id: participantId } = await invite("una@example.com");
    await assumeRole(context(), rita, { incidentId: id, participantId, role: "scribe" });
    expect(await waiting()).toEqual([]);
  });
});

test("a reopened incident is announced once its conversation is open again", async () => {
  await put({ status: "Closed" });
  await endDeliveries(flow.db, flow.clock.now());
  await runFlow(context(plugins), id);
  await flow.db.delete(delivery);
  await put({ status: "Active" });
  expect((await waiting()).map(({ pluginSlug }) => pluginSlug)).toEqual([]);
  await runFlow(context(), id);
  const text = [`**${name}: Disk full**`, "rita reopened the incident.", weblink()].join("\n\n");
  expect(await waiting()).toEqual(byBoth({ subject: `${name}: Active`, text }));
});

test("a message before a conversation is open is delivered once it is", async () => {
  chat.answer({
    create: () => {
      throw new Error();
    },
  });
  id = await flow.report(plugins);
  await runFlow(context(), id);
  await endDeliveries(flow.db, flow.clock.now());
  await flow.db.delete(delivery);
  const { id: participantId } = await invite("una@example.com");
  await assumeRole(context(), rita, { incidentId: id, participantId, role: "commander" });
  await say(context(), rita, { incidentId: id, text: "Hello" });
  await say(context(), rita, { incidentId: id, text: "Not for you", origin: "chat" });
  expect((await waiting()).filter(({ pluginSlug }) => pluginSlug === "chat")).toHaveLength(2);
  expect(await attemptOf("chat")).toEqual(["again", "again"]);
  chat.answer({ create: () => ({}) });
  flow.clock.advance(30);
  await runFlow(context(), id);
  expect(await attemptOf("chat")).toEqual(["done", "done"]);
  expect(chat.to("send").map(({ message }) => message.text)).toContain("Hello");
});

test("a message does not miss that its conversation is being opened", async () => {
  await flow.db.delete(conversation).where(eq(conversation.pluginSlug, "chat"));
  const unfinished = { state: "Pending", finishedAt: null, dueAt: flow.clock.now() } as const;
  await flow.db.update(flowStep).set(unfinished).where(eq(flowStep.step, "reported:conversation:chat"));
  await say(context(), rita, { incidentId: id, text: "Hello" });
  const statements = noteStatements(flow.db);
  await attemptAll(context());
  expect((await waiting()).filter(({ pluginSlug }) => pluginSlug === "chat")).toHaveLength(1);
  // The conversation and its step are read together: it could be opened between two reads.
  const reads = statements.filter((text) => text.startsWith("select") && text.includes("flow_step"));
  expect(reads.every((text) => text.includes('from "delivery"'))).toBe(true);
});

test("a conversation that can no longer be opened gets no more deliveries", async () => {
  const refused = () => {
    throw Object.assign(new Error(), { detail: "no room", permanent: true });
  };
  id = await flow.report(plugins);
  await writeReport(context(), rita, { incidentId: id, conditions: "Full", actions: "", needs: "" });
  chat.answer({ create: refused });
  await runFlow(context(), id);
  expect(await attemptOf("chat")).toEqual(["dead"]);
  await say(context(), rita, { incidentId: id, text: "Hello" });
  expect(await attemptOf("chat")).toEqual([]);
});

test("a conversation is archived after what was said in it has been delivered", async () => {
  await say(context(), rita, { incidentId: id, text: "Last words" });
  await put({ status: "Closed" });
  await runFlow(context(), id);
  expect(chat.to("archive")).toEqual([]);
  expect(await flow.step(id, "closed:conversation:chat")).toMatchObject({ state: "Pending", attempts: 0 });
  await attemptAll(context());
  flow.clock.advance(5);
  await runFlow(context(), id);
  expect(chat.calls.map(({ method }) => method).slice(-3)).toEqual(["send", "send", "archive"]);
});

test("the channel is archived after a reminder to it has been delivered", async () => {
  const key = { task: "reminder", what: "incident", whom: "conversation" };
  const message = { subject: "A report is due", text: "" };
  const reminder = { key, incidentId: id, pluginSlug: "channel", message };
  await flow.db.transaction((tx) => deliver(tx, context(), [reminder]));
  await put({ status: "Closed" });
  await runFlow(context(), id);
  expect(channel.to("archive")).toEqual([]);
  await attemptAll(context());
  flow.clock.advance(5);
  await runFlow(context(), id);
  expect(channel.calls.map(({ method }) => method).slice(-2)).toEqual(["send", "archive"]);
});

test("without another conversation, writing touches no delivery", async () => {
  using alone = pluginsOf(channel);
  const statements = noteStatements(flow.db);
  await say(context(alone), rita, { incidentId: id, text: "Hello" });
  await writeReport(context(alone), rita, { incidentId: id, conditions: "Full", actions: "", needs: "" });
  await updateIncident(context(alone), rita, { ...(await row()), status: "Stable" });
  expect(statements.length).toBeGreaterThan(10);
  expect(statements.filter((text) => /delivery"/.test(text.replaceAll("delivery_key", "")))).toEqual([]);
  expect(await inChannel()).toHaveLength(2);
});

test("an uncommitted message is not sent", async () => {
  const failing = flow.db.transaction(async (tx) => {
    await say({ ...context(), db: tx }, rita, { incidentId: id, text: "Never mind" });
    throw new Error("rolled back");
  });
  await expect(failing).rejects.toThrow("rolled back");
  expect(await waiting()).toEqual([]);
});
