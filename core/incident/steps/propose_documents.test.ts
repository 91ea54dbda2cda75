import { afterAll, beforeAll, expect, test } from "bun:test";
import { desc, eq, like } from "drizzle-orm";
import { document, incident, recommendation } from "../../../drizzle/schema/index.ts";
import { fakeDocumentResolver } from "../../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../../plugins/fake/plugins.ts";
import { somebodyWaits } from "../../../tests/support/database/blocked.ts";
import { type FlowTest, startFlowTest } from "../../../tests/support/domain/flow.ts";
import { runFlow } from "./run.ts";

let flow: FlowTest;
let runbook: number;
beforeAll(async () => {
  flow = await startFlowTest();
  runbook = await newDocument({ name: "Runbook" });
});
afterAll(() => flow[Symbol.asyncDispose]());

async function newDocument(more: { name: string; weblink?: string; incidentId?: number }): Promise<number> {
  const stamps = { createdAt: flow.clock.now(), updatedAt: flow.clock.now() };
  const [row] = await flow.db
    .insert(document)
    .values({ resourceType: "reference", ...more, ...stamps })
    .returning();
  return row!.id;
}

const step = "reported:documents";
const reasons = [{ kind: "other" as const, name: "has helped" }];

const proposedIn = async (incidentId: number) => {
  const rows = await flow.db
    .select({ name: document.name, id: document.id, incidentId: document.incidentId })
    .from(recommendation)
    .innerJoin(document, eq(document.id, recommendation.documentId))
    .where(eq(recommendation.incidentId, incidentId))
    .orderBy(recommendation.id);
  return rows;
};

test("our documents are proposed with reasons; a repetition replaces these silently", async () => {
  using fake = fakeDocumentResolver({
    resolve: [
      () => [{ document: { id: runbook }, reasons }],
      () => [{ document: { id: runbook }, reasons: [] }],
    ],
  });
  const plugins = pluginsOf(fake);
  const id = await flow.report(plugins);
  await runFlow(flow.context(plugins), id);
  expect(await flow.told(id, "document.proposed", "step.done")).toContain(
    "document.proposed fake-document-resolver: Document proposed: Runbook",
  );
  const why = () => flow.db.select().from(recommendation).where(eq(recommendation.incidentId, id));
  expect(await why()).toMatchObject([{ documentId: runbook, reasons }]);
  await flow.again(id, step);
  await runFlow(flow.context(plugins), id);
  expect(await why()).toMatchObject([{ documentId: runbook, reasons: [] }]);
  expect(await flow.told(id, "document.proposed")).toHaveLength(1);
});

test("a link becomes one document of ours, even for concurrent incidents", async () => {
  const link = { name: "Wiki", weblink: "https://wiki.example.com/a b" };
  const { promise: all, resolve: answer } = Promise.withResolvers<void>();
  using fake = fakeDocumentResolver({
    resolve: async () => {
      if (fake.calls.length === 8) answer();
      await all;
      return [{ document: { ...link, weblink: link.weblink.replace(" ", "%20") }, reasons }];
    },
  });
  const plugins = pluginsOf(fake);
  const ids = await Promise.all(Array.from({ length: 8 }, () => flow.report(plugins)));
  await Promise.all(ids.map((id) => runFlow(flow.context(plugins), id)));
  const made = await flow.db.select().from(document).where(eq(document.name, "Wiki"));
  expect(made).toMatchObject([
    {
      resourceType: "reference",
      weblink: "https://wiki.example.com/a%20b",
      incidentId: null,
      pluginSlug: null,
    },
  ]);
  for (const id of ids) expect(await proposedIn(id)).toMatchObject([{ id: made[0]!.id }]);
});

test("answers with the same new links in different orders do not deadlock", async () => {
  const { promise: all, resolve: answer } = Promise.withResolvers<void>();
  const pages = Array.from({ length: 30 }, (_, page) => ({
    name: `Page ${page}`,
    weblink: `https://pages.example.com/${page}`,
  }));
  using fake = fakeDocumentResolver({
    resolve: async ({ incident: { id } }) => {
      if (fake.calls.length === 4) answer();
      await all;
      const mine = id % 2 === 0 ? pages : pages.toReversed();
      return mine.map((page) => ({ document: page, reasons }));
    },
  });
  const plugins = pluginsOf(fake);
  const ids = await Promise.all(Array.from({ length: 4 }, () => flow.report(plugins)));
  await Promise.all(ids.map((id) => runFlow(flow.context(plugins), id)));
  for (const id of ids) {
    expect(await flow.step(id, step)).toMatchObject({ state: "Done", error: null });
    const names = pages.map(({ name }) => name);
    expect((await proposedIn(id)).map(({ name }) => name)).toEqual(id % 2 === 0 ? names : names.toReversed());
  }
  expect(await flow.db.$count(document, like(document.name, "Page %"))).toBe(30);
});

test("a Restricted incident's document is not proposed elsewhere, and its link gets a new document", async () => {
  const hidden = await flow.report(pluginsOf(), { visibility: "Restricted" });
  const open = await flow.report(pluginsOf());
  const weblink = "https://wiki.example.com/secret";
  const secret = await newDocument({ name: "Secret plan", weblink, incidentId: hidden });
  const ofOpen = await newDocument({ name: "Open plan", incidentId: open });
  using fake = fakeDocumentResolver({
    resolve: () => [
      { document: { id: secret }, reasons },
      { document: { id: ofOpen }, reasons },
      { document: { name: "A page", weblink }, reasons },
    ],
  });
  const plugins = pluginsOf(fake);
  const id = await flow.report(plugins);
  await runFlow(flow.context(plugins), id);
  expect(await proposedIn(id)).toMatchObject([
    { name: "Open plan" },
    { name: "A page", incidentId: null, id: expect.any(Number) },
  ]);
  expect(await flow.step(id, step)).toMatchObject({ state: "Done" });
  expect(JSON.stringify(await flow.told(id, "document.proposed"))).not.toContain("Secret");
});

test("a document of another incident is not named on the timeline, since that may become Restricted", async () => {
  const other = await flow.report(pluginsOf());
  const weblink = "https://wiki.example.com/autopsy";
  const ofOther = await newDocument({ name: "Autopsy", weblink, incidentId: other });
  const linked = await newDocument({
    name: "Autopsy in pictures",
    weblink: `${weblink}/pictures`,
    incidentId: other,
  });
  let own = 0;
  using fake = fakeDocumentResolver({
    resolve: () => [
      { document: { id: ofOther }, reasons },
      { document: { name: "x", weblink: `${weblink}/pictures` }, reasons },
      { document: { id: runbook }, reasons },
      { document: { id: own }, reasons },
    ],
  });
  const plugins = pluginsOf(fake);
  const id = await flow.report(plugins);
  own = await newDocument({ name: "Its own", incidentId: id });
  await runFlow(flow.context(plugins), id);
  expect((await proposedIn(id)).map((row) => row.id)).toEqual([ofOther, linked, runbook, own]);
  const said = "document.proposed fake-document-resolver: Document proposed:";
  expect(await flow.told(id, "document.proposed")).toEqual([
    `${said} a document of another incident`,
    `${said} a document of another incident`,
    `${said} Runbook`,
    `${said} Its own`,
  ]);
});

test("a link proposed in a Restricted incident is visible only to its participants", async () => {
  const weblink = "https://wiki.example.com/breach";
  using fake = fakeDocumentResolver({ resolve: () => [{ document: { name: "Breach", weblink }, reasons }] });
  const plugins = pluginsOf(fake);
  const id = await flow.report(plugins, { visibility: "Restricted" });
  await runFlow(flow.context(plugins), id);
  expect(await proposedIn(id)).toMatchObject([{ name: "Breach", incidentId: id }]);
  await flow.again(id, step);
  await runFlow(flow.context(plugins), id);
  expect(await proposedIn(id)).toHaveLength(1);
  const [newest] = await flow.db.select().from(document).orderBy(desc(document.id)).limit(1);
  expect(newest?.name).toBe("Breach");
  // Once everybody may know of it, the next incident uses the same document.
  await flow.db.update(incident).set({ visibility: "Open" }).where(eq(incident.id, id));
  const next = await flow.report(plugins);
  await runFlow(flow.context(plugins), next);
  expect(await proposedIn(next)).toMatchObject([{ id: newest!.id }]);
});

test("a document that an admin is deleting counts as missing", async () => {
  const gone = await newDocument({ name: "Gone" });
  using fake = fakeDocumentResolver({ resolve: [() => [], () => [{ document: { id: gone }, reasons }]] });
  const plugins = pluginsOf(fake);
  const id = await flow.report(plugins);
  await runFlow(flow.context(plugins), id);
  // Alone, so that no other step waits meanwhile.
  await flow.again(id, step);
  let run: Promise<void> | undefined;
  await flow.db.transaction(async (tx) => {
    await tx.delete(document).where(eq(document.id, gone));
    run = runFlow(flow.context(plugins), id);
    await somebodyWaits(flow.db);
  });
  await run;
  expect(await flow.step(id, step)).toMatchObject({
    error: "fake-document-resolver proposed a document that does not exist",
  });
});

const faults: [string, object, string][] = [
  ["an unknown id", { id: 999_999 }, "proposed a document that does not exist"],
  [
    "a link with a password",
    { name: "x", weblink: "https://a:b@example.com/" },
    "proposed a document without a valid name or link",
  ],
  [
    "a name of two lines",
    { name: "x\ny", weblink: "https://example.com/" },
    "proposed a document without a valid name or link",
  ],
];
test.each(faults)("%s fails the plugin's step, and the rest is kept", async (_, one, fault) => {
  using fake = fakeDocumentResolver({
    resolve: () =>
      [
        { document: one, reasons: [] },
        { document: { id: runbook }, reasons },
      ] as never,
  });
  const plugins = pluginsOf(fake);
  const id = await flow.report(plugins);
  await runFlow(flow.context(plugins), id);
  expect(await flow.step(id, step)).toMatchObject({
    state: "Failed",
    error: `fake-document-resolver ${fault}`,
  });
  expect(await proposedIn(id)).toMatchObject([{ id: runbook }]);
});
