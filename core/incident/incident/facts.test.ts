import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { term } from "../../../drizzle/schema/index.ts";
import { pluginsOf } from "../../../plugins/fake/plugins.ts";
import { type FlowTest, startFlowTest } from "../../../tests/support/domain/flow.ts";
import { until } from "../../../tests/support/process/until.ts";
import { join } from "../participant/join.ts";
import { runFlow } from "../steps/run.ts";
import { documentFacts, incidentFacts } from "./facts.ts";
import { lockIncident } from "./lock.ts";

let flow: FlowTest;
beforeAll(async () => {
  flow = await startFlowTest();
});
afterAll(() => flow[Symbol.asyncDispose]());

const plugins = pluginsOf();

test("a term that is added while the terms are read, and then deleted, does not stay in the facts", async () => {
  const context = flow.context(plugins);
  const { db, clock } = flow;
  const id = await flow.report(plugins, { title: "The passphrase of the vault" });
  const stamps = { createdAt: clock.now(), updatedAt: clock.now() };
  const { $client } = db as typeof db & { $client: { unsafe: (...asked: unknown[]) => unknown } };
  const ask = $client.unsafe;
  let written: number | undefined;
  $client.unsafe = (...asked) => {
    if (written !== undefined || !/^select "id", "text"/.test(String(asked[0]))) return ask(...asked);
    written = 0;
    const behind = async () => {
      const [row] = await db
        .insert(term)
        .values({ text: "passphrase", ...stamps })
        .returning({ id: term.id });
      written = row!.id;
      return await (ask(...asked) as { values(): Promise<unknown> }).values();
    };
    return { values: behind };
  };
  await incidentFacts(context, id);
  $client.unsafe = ask;
  expect(written).toBeGreaterThan(0);
  await db.delete(term).where(eq(term.id, written!));
  expect((await incidentFacts(context, id))!.terms).toEqual([]);
});

test("plugins get the facts of any incident, with its reporter and commander", async () => {
  const context = flow.context(plugins);
  const id = await flow.report(plugins, { visibility: "Restricted" });
  const rita = { id: expect.any(Number), name: "rita", email: "rita@example.com" };
  const before = await incidentFacts(context, id);
  expect(before).toEqual({
    id,
    name: expect.stringMatching(/^INC-\d+$/),
    title: "Disk full",
    description: "There was a data loss",
    status: "Active",
    visibility: "Restricted",
    type: { id: flow.typeId, name: "Outage" },
    priority: { id: flow.priorityId, name: "High", rank: 3 },
    terms: [],
    reportedAt: flow.clock.now().toISOString(),
    weblink: `https://svc.example.com/incidents/${id}`,
    reporter: rita,
  });
  await runFlow(context, id);
  expect(await incidentFacts(context, id)).toEqual({ ...before!, commander: rita });
  const ada = await flow.individual("Ada");
  await flow.db.transaction(async (tx) => {
    await lockIncident(tx, "worker", id);
    const by = { incidentId: id, at: flow.clock.now(), actor: "rita@example.com" };
    await join(tx, { ...by, individualId: ada, roles: ["commander"] });
  });
  const commander = { id: ada, name: "Ada", email: "ada@example.com" };
  expect(await incidentFacts(context, id)).toEqual({ ...before!, commander });
  expect(await incidentFacts(context, 999_999)).toBeUndefined();
});

test("terms of title and description are found by their current text", async () => {
  const { db, clock } = flow;
  const context = flow.context(plugins);
  const id = await flow.report(plugins);
  const found = async () => (await incidentFacts(context, id))?.terms.map(({ text }) => text);
  const add = async (text: string) => {
    const values = { text, createdAt: clock.now(), updatedAt: clock.now() };
    const [row] = await db.insert(term).values(values).returning();
    return row!.id;
  };
  // All at one instant: a stopped clock must not hide a change.
  const dataLoss = await add("Data-Loss");
  expect(await found()).toEqual(["Data-Loss"]);
  const disk = await add("disk");
  const loss = await add("loss");
  await add("discs");
  expect(await found()).toEqual(["Data-Loss", "disk", "loss"]);
  const change = (which: number, values: object, version: number) =>
    db
      .update(term)
      .set({ ...values, version })
      .where(eq(term.id, which));
  await change(dataLoss, { text: "leak" }, 2);
  expect(await found()).toEqual(["disk", "loss"]);
  await change(disk, { discoverable: false }, 2);
  expect(await found()).toEqual(["loss"]);
  await change(loss, { deletedAt: clock.now() }, 2);
  expect(await found()).toEqual([]);
  await change(disk, { discoverable: true }, 3);
  expect(await found()).toEqual(["disk"]);
  await db.delete(term).where(eq(term.id, disk));
  expect(await found()).toEqual([]);
  const other = await add("nothing of it");
  expect(await found()).toEqual([]);
  await db.delete(term).where(eq(term.id, other));
  await add("full");
  expect(await found()).toEqual(["full"]);
});

describe("the concurrent steps of a flow", () => {
  const at = () => ({ createdAt: flow.clock.now(), updatedAt: flow.clock.now() });
  type Ask = (...asked: unknown[]) => { values(): Promise<unknown> };

  /**
   * Makes `read` return the terms while five ask, once each of them knows that it needs them. They ask at once, or each
   * after a term that was written since the previous one asked.
   */
  async function reading(
    id: number,
    read: (values: () => Promise<unknown>) => Promise<unknown>,
    written: readonly string[] = [],
  ) {
    const { $client } = flow.db as typeof flow.db & { $client: { unsafe: Ask } };
    const ask = $client.unsafe;
    const { promise: allKnow, resolve } = Promise.withResolvers<void>();
    let knowing = 0;
    $client.unsafe = (...asked) => {
      const values = () => ask(...asked).values();
      const isOfTerms = /^select "id", "text"/.test(String(asked[0]));
      if (isOfTerms) return { values: () => allKnow.then(() => read(values)) };
      if (!/from "incident"/.test(String(asked[0]))) return ask(...asked);
      const counted = async () => {
        const rows = await values();
        knowing += 1;
        // One turn later, they have processed the rows.
        if (knowing === 5) setImmediate(resolve);
        return rows;
      };
      return { values: counted };
    };
    const five: Promise<unknown>[] = [];
    for (let n = 0; n < 5; n += 1) {
      if (written[n] !== undefined) {
        await until("the last one", () => knowing === n);
        await flow.db.insert(term).values({ text: written[n]!, ...at() });
      }
      five.push(incidentFacts(flow.context(plugins), id));
    }
    return Promise.allSettled(five).finally(() => {
      $client.unsafe = ask;
    });
  }

  test("read the terms and build the vocabulary once", async () => {
    const id = await flow.report(plugins, { title: "The lighthouse" });
    await flow.db.insert(term).values({ text: "lighthouse", ...at() });
    let reads = 0;
    const facts = await reading(id, (values) => {
      reads += 1;
      return values();
    });
    const found = { terms: [expect.objectContaining({ text: "lighthouse" })] };
    const one = { status: "fulfilled", value: expect.objectContaining(found) };
    expect(facts).toEqual(Array(5).fill(one));
    expect(reads).toBe(1);
  });

  const words = ["first", "second", "third", "fourth", "fifth"];
  test("share one reading and at most one more after it, however many terms are added", async () => {
    const id = await flow.report(plugins, { title: `The ${words.join(" ")}` });
    let [reads, now, most] = [0, 0, 0];
    const read = async (values: () => Promise<unknown>) => {
      reads += 1;
      now += 1;
      most = Math.max(most, now);
      const rows = await values();
      now -= 1;
      return rows;
    };
    const facts = await reading(id, read, words);
    const found = { terms: words.map((text) => expect.objectContaining({ text })) };
    expect(facts).toEqual(Array(5).fill({ status: "fulfilled", value: expect.objectContaining(found) }));
    expect([reads, most]).toEqual([2, 1]);
  });

  test("start a new reading after waiting for one that failed", async () => {
    const id = await flow.report(plugins, { title: "The old mill" });
    let reads = 0;
    const read = (values: () => Promise<unknown>) => {
      reads += 1;
      return reads === 1 ? Promise.reject(new Error("gone")) : values();
    };
    const facts = await reading(id, read, ["old", "mill", "miller", "millet", "mile"]);
    expect(facts.map(({ status }) => status)).toEqual(["rejected", ...Array(4).fill("fulfilled")]);
    expect(reads).toBe(2);
  });

  test("read the terms again after a failure", async () => {
    const id = await flow.report(plugins, { title: "The windmill" });
    await flow.db.insert(term).values({ text: "windmill", ...at() });
    const failed = await reading(id, () => Promise.reject(new Error("gone")));
    expect(failed.map(({ status }) => status)).toEqual(Array(5).fill("rejected"));
    expect((await incidentFacts(flow.context(plugins), id))!.terms).toMatchObject([{ text: "windmill" }]);
  });
});

test("each database has a separate vocabulary", async () => {
  await using other = await startFlowTest();
  const values = { createdAt: flow.clock.now(), updatedAt: flow.clock.now() };
  const found: unknown[] = [];
  for (const [one, text] of [
    [flow, "full"],
    [other, "elephant"],
  ] as const) {
    await one.db.delete(term);
    await one.db.execute("alter table term alter column id restart with 1000");
    await one.db.insert(term).values({ text, ...values });
    const id = await one.report(plugins);
    found.push((await incidentFacts(one.context(plugins), id))?.terms);
  }
  expect(found).toEqual([[{ id: 1000, text: "full" }], []]);
});

test("a document without a resource id has no facts for a plugin", () => {
  const row = { id: 1, name: "n", resourceType: "incident", resourceId: null, weblink: null };
  expect(documentFacts(row)).toBeUndefined();
  const weblink = "https://docs.example.com/1";
  expect(documentFacts({ ...row, resourceId: "r" })).toEqual({
    id: 1,
    name: "n",
    resourceType: "incident",
    resourceId: "r",
  });
  expect(documentFacts({ ...row, resourceId: "r", weblink })).toMatchObject({ weblink });
});
