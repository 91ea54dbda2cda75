import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { asc, eq, sql } from "drizzle-orm";
import { redactDocument } from "../../core/incident/document/redact.ts";
import { callPlugin } from "../../core/plugin/call.ts";
import type { Plugins } from "../../core/plugin/choose.ts";
import { keepTasks, pageOfTaskPlaces } from "../../core/sync/document_tasks.ts";
import * as schema from "../../drizzle/schema/index.ts";
import { fakeDocument } from "../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../plugins/fake/plugins.ts";
import { signedIn } from "../../tests/support/domain/actor.ts";
import {
  foundTask,
  startTaskSyncTest,
  type TaskSyncTest,
  wikiOf,
} from "../../tests/support/domain/task_sync.ts";
import { incidentTaskSync } from "./incident-task-sync.ts";

const { delivery, document, incident, individual, participant, task } = schema;
const day = 24 * 3_600_000;

let its: TaskSyncTest;
beforeAll(async () => {
  its = await startTaskSyncTest();
});
afterAll(() => its[Symbol.asyncDispose]());
beforeEach(() => its.clear());

test("a task that changes, is deleted and returns causes one timeline entry and one notice each time", async () => {
  const incidentId = await its.addIncident();
  const documentId = await its.addDocument(incidentId);
  const people = {
    creator: "rita@example.com",
    owner: "Alice@example.com",
    assignees: ["Alice@example.com"],
  };
  const bob = { owner: "bob@example.com", assignees: ["bob@example.com", "alice@example.com"] };
  const wiki = wikiOf(
    [foundTask("1", "Free some disk", people)],
    [foundTask("1", "Free some more disk", people)],
    [foundTask("1", "Free some more disk", bob)],
    [foundTask("1", "Free some more disk", { ...bob, status: "Resolved" })],
    [foundTask("1", "Free some more disk", bob)],
    [foundTask("1", "Free some more disk", { deleted: true })],
    [foundTask("1", "Free some more disk", { ...bob, status: "Resolved" })],
    [foundTask("2", "never known", { deleted: true })],
  );
  const seen: string[] = [];
  for (let run = 0; run < 8; run += 1) {
    expect((await its.sync(wiki)).result).toEqual({ done: 1, skipped: 0, failed: 0 });
    seen.push(...(await its.tasks()));
  }
  const two = "owner bob, for alice and bob";
  expect(seen).toEqual([
    "Free some disk, Open, version 1, owner alice, for alice",
    "Free some more disk, Open, version 2, owner alice, for alice",
    `Free some more disk, Open, version 3, ${two}`,
    `Free some more disk, Resolved, version 4, ${two}`,
    `Free some more disk, Open, version 5, ${two}`,
    `Free some more disk, Open, version 6, ${two}, gone`,
    `Free some more disk, Resolved, version 8, ${two}`,
    `Free some more disk, Resolved, version 8, ${two}`,
  ]);
  const by = "worker incident-task-sync:";
  expect(await its.told()).toEqual([
    `${by} Task added: Free some disk`,
    `${by} Task changed: Free some more disk`,
    `${by} Task changed: Free some more disk`,
    `${by} Task resolved: Free some more disk`,
    `${by} Task reopened: Free some more disk`,
    `${by} Task deleted: Free some more disk`,
    `${by} Task added: Free some more disk`,
    `${by} Task resolved: Free some more disk`,
  ]);
  expect(await its.enqueued()).toEqual([
    "Task added",
    "Task changed",
    "Task changed",
    "Task resolved",
    "Task reopened",
    "Task deleted",
    "Task added",
  ]);
  const [first] = await its.db.select().from(delivery).orderBy(asc(delivery.key)).limit(1);
  expect(first!.text.split("\n\n")).toEqual([
    "Free some disk",
    "For: alice@example.com",
    "Due: 2026-11-21 12:00 UTC",
    "In: Notes",
    `http://127.0.0.1:8000/incidents/${incidentId}`,
  ]);
  expect(wiki.to("tasks").map(({ cursor }) => cursor)).toEqual([
    undefined,
    "c1",
    "c2",
    "c3",
    "c4",
    "c5",
    "c6",
    "c7",
  ]);
  const [row] = await its.db.select().from(document).where(eq(document.id, documentId));
  expect([row!.taskCursor, row!.taskSyncedAt, row!.version]).toEqual(["c8", its.clock.now(), 1]);
});

test("a task that is already done when found is not announced as due", async () => {
  await its.addDocument(await its.addIncident());
  await its.sync(wikiOf([foundTask("1", "Free some disk", { status: "Resolved" })]));
  const [only] = await its.db.select().from(delivery);
  expect(only!.text.split("\n\n").slice(0, 3)).toEqual(["Free some disk", "It is Resolved", "In: Notes"]);
});

test("a change is sent to a conversation that is yet to be opened", async () => {
  const incidentId = await its.addIncident();
  await its.addDocument(incidentId);
  const [place] = await its.db.delete(schema.conversation).returning();
  const step = `reported:conversation:${place!.pluginSlug}`;
  await its.db.insert(schema.flowStep).values({ incidentId, step, dueAt: its.clock.now() });
  await its.sync(wikiOf([foundTask("1", "Free some disk")]));
  expect(await its.enqueued()).toHaveLength(1);
});

test("an unchanged document costs one plugin call, or none for our own texts", async () => {
  const incidentId = await its.addIncident();
  await its.addDocument(incidentId);
  const own = await its.addDocument(incidentId, { pluginSlug: "markdown", taskCursor: "3" });
  const text = { content: "- [ ] a", hash: new Bun.CryptoHasher("sha256").update("- [ ] a").digest() };
  await its.db
    .insert(schema.documentContent)
    .values({ documentId: own, ...text, version: 3, updatedAt: its.clock.now() });
  const tasks = () => ({ tasks: [], cursor: "c1", complete: true });
  const wiki = fakeDocument({ tasks }, { slug: "wiki" });
  const markdown = fakeDocument({}, { slug: "markdown" });
  const plugins = pluginsOf(wiki, markdown);
  await its.run(incidentTaskSync, plugins);
  const before = { ...its.sent };
  expect((await its.run(incidentTaskSync, plugins)).result).toEqual({ done: 0, skipped: 1, failed: 0 });
  // One page of documents per plugin, and one for the plugin that is not configured.
  expect([its.sent.statements - before.statements, its.sent.transactions - before.transactions]).toEqual([
    3, 0,
  ]);
  expect([wiki.calls.length, markdown.calls.length]).toEqual([2, 0]);
});

test("processes all documents, page by page", async () => {
  const incidentId = await its.addIncident();
  await its.db.execute(sql`
    insert into document (name, resource_type, plugin_slug, resource_id, incident_id, task_cursor, created_at, updated_at)
    select 'Notes', 'incident', 'wiki', n, ${incidentId}, 'c', now(), now() from generate_series(1, 501) n`);
  const wiki = fakeDocument({ tasks: () => ({ tasks: [], cursor: "c", complete: true }) }, { slug: "wiki" });
  expect((await its.sync(wiki)).result).toEqual({ done: 0, skipped: 501, failed: 0 });
  expect(new Set(wiki.to("tasks").map(({ document }) => document.id)).size).toBe(501);
});

test("covers only open incidents and documents with text; those of a plugin that is not chosen are faults", async () => {
  await its.addDocument(await its.addIncident("Stable"));
  await its.addDocument(await its.addIncident("Closed"));
  await its.addDocument(await its.addIncident(), { resourceId: null });
  await its.addDocument(await its.addIncident(), { pluginSlug: null, resourceId: null });
  const id = await its.addDocument(await its.addIncident(), { pluginSlug: "other" });
  const { result, faults } = await its.sync(wikiOf([foundTask("1", "a")]));
  expect(result).toEqual({ done: 1, skipped: 0, failed: 1 });
  expect(faults).toEqual([
    { item: `document ${id}`, reason: "Its plugin other is no longer chosen: SVC_PLUGIN_DOCUMENT" },
  ]);
  expect(await its.tasks()).toEqual(["a, Open, version 1"]);
});

test("of a closed incident, post-mortems in our database are covered when they change, and no others", async () => {
  const closed = await its.addIncident("Closed");
  await its.addDocument(closed, { resourceType: "review" });
  const text = async (content: string, more: Partial<typeof document.$inferInsert>) => {
    const documentId = await its.addDocument(closed, { pluginSlug: "markdown", ...more });
    const hash = new Bun.CryptoHasher("sha256").update(content).digest();
    const values = { documentId, content, hash, updatedAt: its.clock.now() };
    await its.db.insert(schema.documentContent).values(values);
    return documentId;
  };
  await text("- [ ] of another document", {});
  await text("- [ ] of a template", { resourceType: "review", incidentId: null });
  const id = await text("- [ ] Replace the certificate @alice", { resourceType: "review" });
  const plugins = await its.choose({ SVC_PLUGIN_DOCUMENT: "markdown" });
  const run = async () => (await its.run(incidentTaskSync, plugins)).result;
  // The document of the wiki is not chosen, and not looked at.
  expect(await run()).toEqual({ done: 1, skipped: 0, failed: 0 });
  expect(await its.tasks()).toEqual(["Replace the certificate, Open, version 1, owner alice, for alice"]);
  expect(await run()).toEqual({ done: 0, skipped: 0, failed: 0 });
  const edit = (text: string) =>
    callPlugin(plugins.ofType("document")[0]!, "update", {
      document: { id, name: "Review", resourceType: "review", resourceId: "x" },
      text,
    });
  await edit("- [ ] Replace the certificates @alice");
  const [read] = await pageOfTaskPlaces(its.db, { slug: "markdown" }, 0, 10);
  await edit("- [x] Replace the certificate @alice");
  // What a run has read meanwhile is not kept, or the last text would never be read.
  const kept = { found: [], cursor: "2", clock: its.clock };
  expect(await its.db.transaction((tx) => keepTasks(tx, read!, kept))).toBeUndefined();
  expect(await run()).toEqual({ done: 1, skipped: 0, failed: 0 });
  expect(await its.tasks()).toEqual(["Replace the certificate, Resolved, version 2, owner alice, for alice"]);
});

test("a task without a due date is due in a day, a review's in a week; a due date lasts the whole day", async () => {
  const incidentId = await its.addIncident();
  await its.addDocument(incidentId);
  await its.addDocument(incidentId, { resourceType: "review" });
  await its.sync(
    wikiOf([foundTask("1", "a"), foundTask("2", "b", { resolveBy: "2026-12-01" })], [foundTask("1", "c")]),
  );
  const due = (await its.db.select().from(task).orderBy(asc(task.id))).map(({ description, resolveBy }) => [
    description,
    resolveBy.getTime() - its.clock.now().getTime(),
  ]);
  expect(Object.fromEntries(due)).toEqual({
    a: day,
    c: 7 * day,
    b: Date.parse("2026-12-01T23:59:59.999Z") - its.clock.now().getTime(),
  });
});

describe("with our own Markdown documents", () => {
  let plugins: Plugins;
  let id: number;
  beforeEach(async () => {
    plugins = await its.choose({ SVC_PLUGIN_DOCUMENT: "markdown" });
    id = await start(await its.addIncident());
  });
  const start = async (incidentId: number, more = {}) => {
    const id = await its.addDocument(incidentId, { pluginSlug: "markdown", resourceId: "x", ...more });
    await callPlugin(plugins.ofType("document")[0]!, "create", {
      document: { id, name: "Notes", resourceType: "incident" },
      name: "Notes",
      variables: {},
    });
    return id;
  };
  const facts = () => ({ id, name: "Notes", resourceType: "incident", resourceId: "x" });
  const edit = (text: string) =>
    callPlugin(plugins.ofType("document")[0]!, "update", { document: facts(), text });
  const run = async () => (await its.run(incidentTaskSync, plugins)).result;

  test("tasks follow the text through edits, checkmarks, moves, removal and return", async () => {
    await edit("- [ ] Free some disk @alice\n- [ ] Call the vendor @bob (due 2026-12-01)\n");
    expect(await run()).toEqual({ done: 1, skipped: 0, failed: 0 });
    expect(await run()).toEqual({ done: 0, skipped: 0, failed: 0 });
    await edit("- [x] Call the vendor @bob (due 2026-12-01)\n- [ ] Free some more disk @alice @bob\n");
    await run();
    expect(await its.tasks()).toEqual([
      "Free some more disk, Open, version 2, owner alice, for alice and bob",
      "Call the vendor, Resolved, version 2, owner bob, for bob",
    ]);
    await edit("- [ ] Call the vendor @bob (due 2026-12-01)\n");
    await run();
    await edit("- [ ] Call the vendor @bob (due 2026-12-01)\n- [ ] Free some more disk @alice @bob\n");
    await run();
    expect(await its.tasks()).toEqual([
      "Free some more disk, Open, version 4, owner alice, for alice and bob",
      "Call the vendor, Open, version 3, owner bob, for bob",
    ]);
  });

  test("the tasks of a post-mortem stay when its text is redacted, until the text is edited", async () => {
    id = await start(await its.addIncident("Closed"), { resourceType: "review", resourceId: "y" });
    const text = "- [ ] Replace the certificate\n- [ ] Alert on full disks\n";
    await edit(text);
    await run();
    await edit(`${text}- [ ] Change the password hunter2\n`);
    const [read] = await pageOfTaskPlaces(its.db, { slug: "markdown" }, 0, 10);
    const why = { id, reason: "A password", address: "192.0.2.1" };
    const { version } = await redactDocument(its, signedIn("root", { admin: true }), why);
    // A run that began before that keeps nothing of what it has read, before or after.
    for (const cursor of [version - 1, version]) {
      const kept = { found: [], cursor: String(cursor), clock: its.clock };
      expect(await its.db.transaction((tx) => keepTasks(tx, read!, kept))).toBeUndefined();
    }
    expect(await run()).toEqual({ done: 0, skipped: 0, failed: 0 });
    const both = ["Replace the certificate, Open, version 1", "Alert on full disks, Open, version 1"];
    expect(await its.tasks()).toEqual(both);
    await edit("# What we still want to do\n\n- [ ] Alert on full disks\n");
    await run();
    expect(await its.tasks()).toEqual(["Replace the certificate, Open, version 2, gone", both[1]!]);
  });

  test("a person known only through Restricted incidents is treated as a new name", async () => {
    const hidden = await its.addIncident();
    await its.db.update(incident).set({ visibility: "Restricted" }).where(eq(incident.id, hidden));
    const stamps = { createdAt: new Date(0), updatedAt: new Date(0), version: 7 };
    const people = [
      { name: "Dana Scully", email: "dana@example.com", listed: false },
      { name: "Bob Andrews", email: "bob@example.com" },
    ];
    const rows = await its.db
      .insert(individual)
      .values(people.map((one) => ({ ...one, ...stamps })))
      .returning({ id: individual.id });
    await its.db
      .insert(participant)
      .values(rows.map(({ id }) => ({ incidentId: hidden, individualId: id, joinedAt: its.clock.now() })));
    await edit("- [ ] Ask @dana@example.com and @bob@example.com\n");
    await run();
    expect((await its.tasks())[0]).toContain("for Bob Andrews and dana");
    const [dana] = await its.db.select().from(individual).where(eq(individual.email, "dana@example.com"));
    expect(dana).toMatchObject({ version: 1, createdAt: its.clock.now() });
  });
});
