import { afterAll, beforeAll, expect, test } from "bun:test";
import { and, eq } from "drizzle-orm";
import { document, incidentType, incidentTypeTemplate } from "../../../drizzle/schema/index.ts";
import type { Fake } from "../../../plugins/fake/fake.ts";
import { fakeDocument } from "../../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../../plugins/fake/plugins.ts";
import { type FlowTest, startFlowTest } from "../../../tests/support/domain/flow.ts";
import { runFlow } from "./run.ts";

let flow: FlowTest;
const types: Record<string, number> = {};
beforeAll(async () => {
  flow = await startFlowTest();
  const stamps = { createdAt: flow.clock.now(), updatedAt: flow.clock.now() };
  const template = async (type: string, resourceType: string, values: object) => {
    if (!types[type]) {
      const [row] = await flow.db
        .insert(incidentType)
        .values({ name: type, ...stamps })
        .returning();
      types[type] = row!.id;
    }
    const name = `Template of a ${resourceType}`;
    const [row] = await flow.db
      .insert(document)
      .values({ name, resourceType: "template", ...values, ...stamps })
      .returning();
    const link = { incidentTypeId: types[type], resourceType, documentId: row!.id };
    await flow.db.insert(incidentTypeTemplate).values(link);
  };
  await template("both", "incident", { pluginSlug: "fake-document", resourceId: "T1" });
  await template("both", "review", { pluginSlug: "fake-document", resourceId: "T2" });
  await template("elsewhere", "review", { pluginSlug: "wiki", resourceId: "T3" });
  await template("a link", "review", { weblink: "https://wiki.example.com/" });
});
afterAll(() => flow[Symbol.asyncDispose]());

const step = "reported:documents";
const made = (incidentId: number) =>
  flow.db.select().from(document).where(eq(document.incidentId, incidentId)).orderBy(document.id);

/** Stores each text under our id, each once. */
function storing() {
  return fakeDocument({ create: ({ document: { id } }) => ({ resourceId: `text-${id}` }) });
}

async function reported(fake: Fake<"document">, type?: string): Promise<number> {
  const plugins = pluginsOf(fake);
  const id = await flow.report(plugins, type ? { incidentTypeId: types[type] } : {});
  await runFlow(flow.context(plugins), id);
  return id;
}

test("without a template, an incident gets one document", async () => {
  using fake = storing();
  const id = await reported(fake);
  const [row, ...others] = await made(id);
  expect(others).toEqual([]);
  const name = expect.stringMatching(/^INC-\d+: Disk full$/);
  expect(row).toMatchObject({ name, resourceType: "incident", pluginSlug: "fake-document" });
  expect(row?.resourceId).toBe(`text-${row?.id}`);
  const [call] = fake.to("create");
  expect(call).toMatchObject({ document: { id: row!.id, resourceType: "incident" }, incident: { id }, name });
  expect(call).not.toHaveProperty("template");
  expect(await flow.told(id, "document.created", "step.done")).toEqual([
    "step.done core: Commander: rita",
    expect.stringMatching(/^document.created fake-document: Document added: INC-\d+: Disk full$/),
    "step.done core: Documents proposed: 0; created: 1",
  ]);
});

test("each template creates a document with the facts of the incident and its commander", async () => {
  using fake = storing();
  const id = await reported(fake, "both");
  expect(await made(id)).toMatchObject([
    { resourceType: "incident", name: expect.stringMatching(/^INC-\d+: Disk full$/) },
    { resourceType: "review", name: expect.stringMatching(/^INC-\d+ review: Disk full$/) },
  ]);
  expect(fake.to("create")).toMatchObject([
    { template: { resourceId: "T1", resourceType: "template" } },
    { template: { resourceId: "T2" } },
  ]);
  expect(fake.to("create")[0]!.variables).toEqual({
    name: expect.stringMatching(/^INC-\d+$/),
    title: "Disk full",
    description: "There was a data loss",
    type: "both",
    priority: "High",
    commander: "rita",
    reporter: "rita",
    weblink: `https://svc.example.com/incidents/${id}`,
    reported_at: flow.clock.now().toISOString(),
  });
});

test("a repeated run finds the documents that it has created", async () => {
  using fake = storing();
  const id = await reported(fake, "both");
  const before = await made(id);
  await flow.again(id, step);
  await runFlow(flow.context(pluginsOf(fake)), id);
  expect(await made(id)).toEqual(before);
  expect(fake.to("create")).toHaveLength(2);
});

test.each([
  ["throws", () => Promise.reject(new Error("hunter2"))],
  ["gives an invalid answer", () => ({ resourceId: 7 }) as never],
] as const)(
  "a plugin that %s leaves no document without text, and the others are created",
  async (_, answer) => {
    using fake = fakeDocument({ create: [answer, () => ({ resourceId: crypto.randomUUID() })] });
    const id = await reported(fake, "both");
    expect(await made(id)).toMatchObject([{ resourceType: "review", resourceId: expect.any(String) }]);
    expect(await flow.step(id, step)).toMatchObject({ state: "Failed" });
    expect(await flow.told(id, "document.created")).toHaveLength(1);
    fake.answer({ create: [() => ({ resourceId: crypto.randomUUID() })] });
    flow.clock.advance(30);
    await runFlow(flow.context(pluginsOf(fake)), id);
    expect(await made(id)).toHaveLength(2);
    expect(await flow.step(id, step)).toMatchObject({ state: "Done" });
    const keys = fake.to("create").map(({ key }) => key);
    expect([keys[0], new Set(keys).size]).toEqual([keys[2]!, 2]);
  },
);

test("after a timeout the record stays, and the next attempt is for the same one", async () => {
  using fake = fakeDocument({ create: () => new Promise(() => {}) }, { timeoutMilliseconds: 30 });
  const id = await reported(fake);
  const [waiting] = await made(id);
  expect(waiting).toMatchObject({ pluginSlug: "fake-document", resourceId: null });
  expect(await flow.told(id, "document.created")).toEqual([]);
  fake.answer({ create: () => ({ resourceId: crypto.randomUUID(), weblink: "https://docs.example.com/1" }) });
  flow.clock.advance(30);
  await runFlow(flow.context(pluginsOf(fake)), id);
  expect(await made(id)).toMatchObject([
    { id: waiting!.id, resourceId: expect.any(String), weblink: "https://docs.example.com/1" },
  ]);
  const [first, second] = fake.to("create");
  expect([second!.key, second!.document]).toEqual([first!.key, first!.document]);
});

test("a record deleted during the plugin call is not a document, and is not announced", async () => {
  using fake = fakeDocument({
    create: async ({ document: { id } }) => {
      await flow.db.delete(document).where(eq(document.id, id));
      return { resourceId: `text-${id}` };
    },
  });
  const id = await reported(fake);
  expect(await made(id)).toEqual([]);
  expect(await flow.told(id, "document.created", "step.done")).toEqual([
    "step.done core: Commander: rita",
    "step.done core: Documents proposed: 0; created: 0",
  ]);
});

test("a text that belongs to another document is refused", async () => {
  using fake = fakeDocument({ create: () => ({ resourceId: "T1" }) });
  const id = await reported(fake);
  expect(await flow.step(id, step)).toMatchObject({
    state: "Failed",
    error: "fake-document returned the text of another document",
  });
  expect(await made(id)).toEqual([]);
});

test.each(["elsewhere", "a link"])(
  "a template whose text is %s is reported, and the rest is created",
  async (type) => {
    using fake = storing();
    const id = await reported(fake, type);
    expect(await flow.step(id, step)).toMatchObject({
      state: "Failed",
      error: "The text of the template Template of a review is not stored in fake-document",
    });
    expect(await made(id)).toMatchObject([{ resourceType: "incident" }]);
  },
);

test("the first plugin creates documents, even those waiting for a plugin that is gone", async () => {
  using fake = fakeDocument({ create: () => new Promise(() => {}) }, { timeoutMilliseconds: 30 });
  const id = await reported(fake);
  using first = fakeDocument(
    { create: ({ document: { id: ours } }) => ({ resourceId: `first-${ours}` }) },
    { slug: "first" },
  );
  using second = fakeDocument({}, { slug: "second" });
  flow.clock.advance(30);
  const plugins = pluginsOf(first, second);
  await runFlow(flow.context(plugins), id);
  expect(await made(id)).toMatchObject([
    { pluginSlug: "first", resourceId: expect.stringMatching(/^first-/) },
  ]);
  const waits = and(eq(document.incidentId, id), eq(document.pluginSlug, "fake-document"));
  expect(await flow.db.$count(document, waits)).toBe(0);
});
