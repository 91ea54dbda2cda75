import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { and, eq } from "drizzle-orm";
import { conversation, conversationMessage, delivery } from "../../../drizzle/schema/index.ts";
import { after } from "../../../platform/clock.ts";
import { minuteText } from "../../../platform/duration.ts";
import type { Fake } from "../../../plugins/fake/fake.ts";
import { fakeChat, fakeEditing, fakeMailing } from "../../../plugins/fake/fakes.ts";
import { type FakePlugins, pluginsOf } from "../../../plugins/fake/plugins.ts";
import { somebodyWaits } from "../../../tests/support/database/blocked.ts";
import { signedIn } from "../../../tests/support/domain/actor.ts";
import { attemptAll, claimAll, endDeliveries } from "../../../tests/support/domain/delivery.ts";
import { type FlowTest, rita, startFlowTest } from "../../../tests/support/domain/flow.ts";
import { splitDelivery } from "../../outbox/deliver.ts";
import { attemptDelivery } from "../delivery/attempt.ts";
import { amendEntry, withdrawEntry } from "../event/amend.ts";
import { noteOnTimeline } from "../event/note.ts";
import { writeReport } from "../report/write.ts";
import { runFlow } from "../steps/run.ts";
import { say } from "./say.ts";

// A correction reaches what was sent of a note, a message or a report (docs/plugins.md).

let flow: FlowTest;
beforeAll(async () => {
  flow = await startFlowTest();
});
afterAll(() => flow[Symbol.asyncDispose]());

const nothing = () => {};
const made = { create: () => ({}), add: nothing, send: nothing };
const root = signedIn("root", { admin: true });
let id: number;
let plugins: FakePlugins;
let chat: Fake<"conversation">;
let mail: Fake<"conversation">;
beforeEach(async () => {
  chat = fakeEditing({ ...made, edit: nothing, withdraw: nothing }, { slug: "chat" });
  mail = fakeMailing({ ...made, recipients: () => ["individual-1"] }, { slug: "mail" });
  plugins = pluginsOf(fakeChat(made, { slug: "channel" }), chat, mail);
  id = await flow.report(plugins);
  await runFlow(context(), id);
  await endDeliveries(flow.db, flow.clock.now());
  await flow.db.delete(delivery);
});

const context = () => ({ ...flow.context(plugins), db: flow.db });
const note = async (description: string) =>
  (await noteOnTimeline(context(), rita, { incidentId: id, description })).id;
const amend = (eventId: number, version: number, description: string, by = rita) =>
  amendEntry(context(), by, { incidentId: id, eventId, version, text: { description } });
const withdraw = (eventId: number, version: number) =>
  withdrawEntry(context(), rita, { incidentId: id, eventId, version });
const rows = (slug: string) =>
  flow.db
    .select()
    .from(delivery)
    .where(and(eq(delivery.incidentId, id), eq(delivery.pluginSlug, slug)))
    .orderBy(delivery.sequence, delivery.key);
const states = async (slug: string) => (await rows(slug)).map(({ task, state }) => `${task} ${state}`);
/** Sends until nothing waits: recipients have deliveries of their own. */
async function sendAll() {
  while ((await attemptAll(context())).length > 0);
}
async function inChannel() {
  const said = await flow.db
    .select({ text: conversationMessage.text })
    .from(conversationMessage)
    .innerJoin(conversation, eq(conversation.id, conversationMessage.conversationId))
    .where(eq(conversation.incidentId, id))
    .orderBy(conversationMessage.id);
  return said.map(({ text }) => text);
}
const time = () => minuteText(flow.clock.now(), "UTC");

test("what svc wrote into the channel shows the correction, also of a report", async () => {
  const noted = await note("zebra");
  const report = await writeReport(context(), rita, {
    incidentId: id,
    conditions: "zebra",
    actions: "",
    needs: "",
  });
  await amend(noted, 1, "yak");
  const text = { conditions: "yak", actions: "wait", needs: "" };
  await amendEntry(context(), rita, { incidentId: id, eventId: report.eventId!, version: 1, text });
  expect(await inChannel()).toEqual([
    expect.stringMatching(/note from rita\n\n.*\n\nyak\n\n/),
    expect.stringMatching(
      /status report from rita\n\n.*\n\n\*\*Conditions:\*\* yak\n\n\*\*Actions:\*\* wait\n\n/,
    ),
  ]);
  await withdraw(noted, 2);
  expect((await inChannel())[0]).toMatch(/note from rita\n\n.*\n\nWithdrawn\n\n/);
});

test("a backdated note in the channel keeps its time", async () => {
  const at = after(flow.clock.now(), -600);
  const { id: noted } = await noteOnTimeline(context(), rita, { incidentId: id, description: "zebra", at });
  await amend(noted, 1, "yak");
  expect(await inChannel()).toEqual([expect.stringContaining(`**Time:** ${minuteText(at, "UTC")}`)]);
});

test("a plugin with edit and withdraw changes the message that it got, by its key", async () => {
  const noted = await note("zebra");
  await sendAll();
  const { key } = chat.to("send").at(-1)!;
  await amend(noted, 1, "yak");
  await sendAll();
  const { original, message, conversation: of } = chat.to("edit").at(-1)!;
  expect([original, of.incident.id]).toEqual([key, id]);
  expect(message.subject).toEndWith("note from rita");
  expect(message.text).toContain("\n\nyak\n\n");
  await withdraw(noted, 2);
  await sendAll();
  expect(chat.to("withdraw")).toMatchObject([{ original: key, conversation: { incident: { id } } }]);
  expect(chat.to("send")).toHaveLength(2);
  const sequences = (await rows("chat")).map(({ sequence }) => sequence!);
  expect(sequences).toEqual(sequences.toSorted((a, b) => a - b));
});

test("a plugin without them gets a message that says what has changed, and does not repeat a withdrawn text", async () => {
  const noted = await note("zebra");
  await sendAll();
  await amend(noted, 1, "yak");
  await sendAll();
  expect(mail.to("send").at(-1)!.message).toEqual({
    subject: expect.stringContaining(`: rita corrected their note of ${time()}`),
    text: expect.stringContaining("\n\nyak\n\n"),
  });
  await amend(noted, 2, "gnu", root);
  await sendAll();
  expect(mail.to("send").at(-1)!.message.subject).toContain("root corrected rita’s note of");
  await withdraw(noted, 3);
  await sendAll();
  const last = mail.to("send").at(-1)!.message;
  expect(last.subject).toContain(`rita withdrew their note of ${time()}`);
  expect(last.text).not.toMatch(/zebra|yak|gnu/);
});

test("a message is corrected in the conversations to which it was sent", async () => {
  const said = await say(context(), rita, { incidentId: id, text: "zebra" });
  await sendAll();
  await amend(said.eventId!, 1, "yak");
  await sendAll();
  expect(chat.to("edit")).toMatchObject([{ message: { text: "yak" } }]);
  expect(await inChannel()).toEqual(["yak"]);
});

test("a delivery that waits carries the new text, and is dropped after a withdrawal", async () => {
  const noted = await note("zebra");
  await amend(noted, 1, "yak");
  expect(await states("chat")).toEqual(["incident-note Queued"]);
  for (const slug of ["chat", "mail"]) expect((await rows(slug))[0]!.text).toContain("\n\nyak\n\n");
  await withdraw(noted, 2);
  for (const slug of ["chat", "mail"]) expect(await states(slug)).toEqual(["incident-note Obsolete"]);
  await sendAll();
  expect([chat.to("send"), mail.to("send")].flat().filter(({ message }) => /yak/.test(message.text))).toEqual(
    [],
  );
});

test("a dead delivery is sent again with the new text only", async () => {
  const noted = await note("zebra");
  const dead = { state: "Dead" as const, dueAt: null, finishedAt: flow.clock.now(), error: "refused" };
  await flow.db.update(delivery).set(dead).where(eq(delivery.incidentId, id));
  await amend(noted, 1, "yak");
  expect((await rows("chat")).map(({ state, text }) => [state, text.includes("yak")])).toEqual([
    ["Dead", true],
  ]);
  await withdraw(noted, 2);
  expect(await states("chat")).toEqual(["incident-note Obsolete"]);
});

test("the correction of a message that is being sent follows it", async () => {
  const noted = await note("zebra");
  const claims = await claimAll(context(), eq(delivery.pluginSlug, "chat"));
  await amend(noted, 1, "yak");
  expect(await states("chat")).toEqual(["incident-note Queued", "incident-edit Queued"]);
  for (const claim of claims) expect(await attemptDelivery(context(), claim)).toBe("done");
  await sendAll();
  expect(chat.calls.map(({ method }) => method).slice(-2)).toEqual(["send", "edit"]);
});

test("an earlier correction that still waits is replaced", async () => {
  const noted = await note("zebra");
  await sendAll();
  await amend(noted, 1, "yak");
  await amend(noted, 2, "gnu");
  expect(await states("chat")).toEqual([
    "incident-note Done",
    "incident-edit Obsolete",
    "incident-edit Queued",
  ]);
  await sendAll();
  expect(chat.to("edit").map(({ message }) => message.text.includes("gnu"))).toEqual([true]);
});

test("recipients whose message waits get the new text, and the correction follows for the others", async () => {
  mail.answer({ recipients: () => ["individual-1", "individual-2"] });
  const noted = await note("zebra");
  await attemptAll(context(), eq(delivery.pluginSlug, "mail"));
  await amend(noted, 1, "yak");
  expect(await states("mail")).toEqual([
    "incident-note Split",
    "incident-note Queued",
    "incident-note Queued",
  ]);
  await attemptAll(context(), and(eq(delivery.pluginSlug, "mail"), eq(delivery.recipient, "individual-1")));
  await amend(noted, 2, "gnu");
  expect(await states("mail")).toEqual([
    "incident-note Split",
    "incident-note Done",
    "incident-note Queued",
    "incident-correction Queued",
  ]);
  const parts = (await rows("mail")).filter(({ recipient }) => recipient !== null);
  expect(parts.map(({ text }) => /yak|gnu/.exec(text)?.[0])).toEqual(["yak", "gnu"]);
});

test("a message that is split after its correction has the new text", async () => {
  const noted = await note("zebra");
  const [claim] = await claimAll(context(), eq(delivery.pluginSlug, "mail"));
  await amend(noted, 1, "yak");
  await splitDelivery(context(), claim!, ["individual-1"]);
  const [part] = (await rows("mail")).filter(({ recipient }) => recipient !== null);
  expect(part!.text).toContain("\n\nyak\n\n");
});

test("a message that is being split when it is corrected is corrected for each recipient", async () => {
  const noted = await note("zebra");
  const [claim] = await claimAll(context(), eq(delivery.pluginSlug, "mail"));
  const correction = await flow.db.transaction(async (tx) => {
    await splitDelivery({ ...context(), db: tx as unknown as typeof flow.db }, claim!, ["individual-1"]);
    const amending = amend(noted, 1, "yak");
    await somebodyWaits(flow.db);
    return { amending };
  });
  await correction.amending;
  const [part] = (await rows("mail")).filter(({ recipient }) => recipient !== null);
  expect(part!.text).toContain("\n\nyak\n\n");
});
