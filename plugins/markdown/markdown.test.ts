import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { type ActivePlugin, callPlugin } from "../../core/plugin/call.ts";
import type { DocumentFacts } from "../../core/plugin.ts";
import { document, documentContent, task } from "../../drizzle/schema/index.ts";
import { somebodyWaits } from "../../tests/support/database/blocked.ts";
import { type IncidentIds, insertIncident } from "../../tests/support/domain/incident.ts";
import { type PluginTest, startPluginTest } from "../../tests/support/domain/plugins.ts";
import { parseTasks } from "./parse.ts";

let its: PluginTest;
let ids: IncidentIds;
let plugin: ActivePlugin<"document">;
beforeAll(async () => {
  its = await startPluginTest();
  ids = await insertIncident(its.context.db, its.context.clock.now());
  plugin = its.plugins.ofType("document")[0]!;
});
afterAll(() => its[Symbol.asyncDispose]());

async function newDocument(text?: string): Promise<DocumentFacts> {
  const { db, clock } = its.context;
  const at = clock.now();
  const values = {
    name: "Notes",
    resourceType: "incident",
    incidentId: ids.incidentId,
    createdAt: at,
    updatedAt: at,
  };
  const [row] = await db.insert(document).values(values).returning();
  const facts = { id: row!.id, name: "Notes", resourceType: "incident", resourceId: String(row!.id) };
  if (text === undefined) return facts;
  expect(await create(facts)).toMatchObject({ ok: true });
  expect(await callPlugin(plugin, "update", { document: facts, text })).toMatchObject({ ok: true });
  return facts;
}

const create = ({ id, name, resourceType }: DocumentFacts, more: object = {}) =>
  callPlugin(plugin, "create", { document: { id, name, resourceType }, name, variables: {}, ...more });
const textOf = async (facts: DocumentFacts) => await callPlugin(plugin, "text", { document: facts });

describe("create", () => {
  test("stores an empty text without a template, and returns our id", async () => {
    const facts = await newDocument();
    expect(await create(facts)).toEqual({ ok: true, value: { resourceId: String(facts.id) } });
    expect(await textOf(facts)).toEqual({ ok: true, value: { text: "", version: "1" } });
  });

  test("fills in the template", async () => {
    const template = await newDocument("# {{name}}: {{title}}\n");
    const facts = await newDocument();
    await create(facts, { template, variables: { name: "INC-1", title: "- [ ] evil" } });
    expect(await textOf(facts)).toMatchObject({ value: { text: "# INC-1: \\- \\[ \\] evil\n" } });
  });

  test("a text that is appended to the template does not join its last task", async () => {
    for (const end of ["", "\n", "\n\n\n"]) {
      const template = await newDocument(`# {{name}}\n\n- [ ] Keep the logs${end}`);
      const facts = await newDocument();
      await create(facts, { template, variables: { name: "INC-1" } });
      const made = await textOf(facts);
      const text = made.ok && made.value ? made.value.text : "";
      expect(text).toBe("# INC-1\n\n- [ ] Keep the logs\n\n");
      expect(parseTasks(`${text}Appended\n`, undefined).tasks).toMatchObject([
        { description: "Keep the logs" },
      ]);
    }
  });

  test("keeps later edits when it is repeated", async () => {
    const facts = await newDocument("by hand");
    expect(await create(facts)).toMatchObject({ ok: true });
    expect(await textOf(facts)).toMatchObject({ value: { text: "by hand", version: "2" } });
  });

  test("fails if the template has no text here", async () => {
    const facts = await newDocument();
    expect(await create(facts, { template: await newDocument() })).toMatchObject({
      ok: false,
      detail: "markdown failed: The template has no text here",
    });
    expect(await textOf(facts)).toEqual({ ok: true, value: null });
  });
});

test("update replaces a text at the given version, and otherwise reports the current one", async () => {
  const facts = await newDocument("one");
  const update = (version?: string) =>
    callPlugin(plugin, "update", { document: facts, text: "two", version });
  expect(await update("2")).toEqual({ ok: true, value: { version: "3" } });
  expect(await update("2")).toMatchObject({
    ok: false,
    detail: "markdown failed: This text has changed since you read it: it is now at version 3",
  });
  expect(await update()).toEqual({ ok: true, value: { version: "4" } });
  expect(await callPlugin(plugin, "update", { document: facts, name: "x" })).toEqual({ ok: true, value: {} });
  expect(await callPlugin(plugin, "update", { document: facts, text: "a\0" })).toMatchObject({ ok: false });
  const missing = { document: { ...facts, id: 999_999 }, text: "a" };
  expect(await callPlugin(plugin, "update", missing)).toMatchObject({
    detail: "markdown failed: This document has no text",
  });
});

test("update does not deadlock with the deletion of its document", async () => {
  const facts = await newDocument("one");
  const { db } = its.context;
  const { documentId } = documentContent;
  const calls: PromiseLike<unknown>[] = [];
  await db.transaction(async (tx) => {
    await tx.select().from(documentContent).where(eq(documentId, facts.id)).for("update");
    calls.push(callPlugin(plugin, "update", { document: facts, text: "two" }));
    await somebodyWaits(db, 1);
    calls.push(db.delete(document).where(eq(document.id, facts.id)).execute());
    await somebodyWaits(db, 2);
  });
  const [updated] = await Promise.all(calls);
  expect(updated).toEqual({ ok: true, value: { version: "3" } });
  expect(await db.select().from(document).where(eq(document.id, facts.id))).toEqual([]);
});

test("get, move and remove", async () => {
  const facts = await newDocument("one");
  expect(await callPlugin(plugin, "get", { document: facts })).toEqual({
    ok: true,
    value: { name: "Notes", version: "2" },
  });
  expect(await callPlugin(plugin, "move", { document: facts, folder: "x" })).toEqual({
    ok: true,
    value: { resourceId: facts.resourceId },
  });
  for (let times = 0; times < 2; times += 1) {
    expect(await callPlugin(plugin, "remove", { document: facts })).toMatchObject({ ok: true });
  }
  expect(await callPlugin(plugin, "get", { document: facts })).toEqual({ ok: true, value: null });
  expect(
    await its.context.db.select().from(documentContent).where(eq(documentContent.documentId, facts.id)),
  ).toEqual([]);
});

describe("tasks", () => {
  const tasksOf = async (facts: DocumentFacts, cursor?: string) => {
    const outcome = await callPlugin(plugin, "tasks", { document: facts, cursor });
    if (!outcome.ok) throw new Error(outcome.detail);
    return outcome.value;
  };
  const keep = async (facts: DocumentFacts, found: Awaited<ReturnType<typeof tasksOf>>["tasks"]) => {
    const at = its.context.clock.now();
    for (const { externalId, description, status, deleted } of found) {
      const stamps = { createdAt: at, updatedAt: at };
      const state = { status, resolvedAt: status === "Resolved" ? at : null, deletedAt: deleted ? at : null };
      await its.context.db
        .insert(task)
        .values({
          incidentId: ids.incidentId,
          documentId: facts.id,
          externalId,
          description,
          ...state,
          resolveBy: at,
          ...stamps,
        })
        .onConflictDoUpdate({ target: [task.documentId, task.externalId], set: { description, ...state } });
    }
  };

  test("lists the tasks of the text, and none if it is unchanged", async () => {
    const facts = await newDocument("- [ ] Free some @alice (due 2026-12-01)\n- [x] Ask @bob");
    const { tasks, cursor, complete } = await tasksOf(facts);
    expect([cursor, complete]).toEqual(["2", true]);
    expect(tasks).toMatchObject([
      { description: "Free some", status: "Open", owner: "alice@example.com", resolveBy: "2026-12-01" },
      { description: "Ask", status: "Resolved", owner: "bob@example.com" },
    ]);
    expect(await tasksOf(facts, "2")).toEqual({ tasks: [], cursor: "2", complete: true });
  });

  test("keeps ids through edits, moves and marks, and when a task comes back", async () => {
    const facts = await newDocument("- [ ] Free some disk\n- [ ] Call the vendor\n- [ ] Write it down");
    const write = async (text: string, cursor: string) => {
      await callPlugin(plugin, "update", { document: facts, text });
      const found = await tasksOf(facts, cursor);
      await keep(facts, found.tasks);
      return found;
    };
    const first = await tasksOf(facts);
    await keep(facts, first.tasks);
    const [free, call, write3] = first.tasks.map(({ externalId }) => externalId);
    const edited = await write("- [x] Call the vendor\n- [ ] Free some more disk\n- [ ] New", first.cursor);
    expect(edited.tasks).toMatchObject([
      { externalId: call, status: "Resolved" },
      { externalId: free, description: "Free some more disk" },
      { description: "New" },
      { externalId: write3, deleted: true },
    ]);
    const back = await write("- [ ] Write it down", edited.cursor);
    expect(back.tasks.filter(({ deleted }) => !deleted)).toMatchObject([{ externalId: write3 }]);
    expect(back.tasks.filter(({ deleted }) => deleted)).toHaveLength(3);
  });

  test("reports none as deleted from a text that is too long to be read whole", async () => {
    const follow = "## Follow-up\n\n- [ ] Buy disks\n";
    const facts = await newDocument(follow);
    await keep(facts, (await tasksOf(facts)).tasks);
    const write = async (text: string) => {
      await callPlugin(plugin, "update", { document: facts, text: `- [ ] First\n\n${text}` });
      return (await tasksOf(facts)).tasks.map(({ description, deleted }) => [description, deleted]);
    };
    const long = "It failed.\n".repeat(50_000);
    expect(await write(`${long}${follow}`)).toEqual([["First", undefined]]);
    // Its section alone counts.
    expect(await write(`## Timeline\n\n${long}${follow}`)).toEqual([
      ["First", undefined],
      ["Buy disks", undefined],
    ]);
    expect(await write("")).toEqual([
      ["First", undefined],
      ["Buy disks", true],
    ]);
  });

  test("reports tasks as deleted if the text is deleted", async () => {
    const facts = await newDocument("- [ ] a");
    await keep(facts, (await tasksOf(facts)).tasks);
    await callPlugin(plugin, "remove", { document: facts });
    expect((await tasksOf(facts, "2")).tasks).toMatchObject([{ description: "a", deleted: true }]);
  });
});
