import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { eq, sql } from "drizzle-orm";
import * as schema from "../../drizzle/schema/index.ts";
import { fakeDocument } from "../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../plugins/fake/plugins.ts";
import { somebodyWaits } from "../../tests/support/database/blocked.ts";
import {
  foundTask,
  startTaskSyncTest,
  type TaskSyncTest,
  wikiOf,
} from "../../tests/support/domain/task_sync.ts";
import type { TaskContext } from "../task.ts";
import { incidentTaskSync } from "./incident-task-sync.ts";

const { delivery, document, event, incident, individual, task } = schema;

let its: TaskSyncTest;
beforeAll(async () => {
  its = await startTaskSyncTest();
});
afterAll(() => its[Symbol.asyncDispose]());
beforeEach(() => its.clear());

test("continues from answer to answer until there are no more; a crash in between loses nothing", async () => {
  await its.addDocument(await its.addIncident());
  const answers = [1, 2, 3].map((n) => ({
    tasks: [foundTask(String(n), `task ${n}`)],
    cursor: `c${n}`,
    complete: n === 3,
  }));
  const next = ({ cursor }: { cursor?: string }) => answers[cursor ? Number(cursor.slice(1)) : 0]!;
  const wiki = fakeDocument({ tasks: next }, { slug: "wiki" });
  let transactions = 0;
  const crash: Parameters<TaskSyncTest["run"]>[2] = {
    transaction: (work) =>
      its.db.transaction(async (tx) => {
        const done = await work(tx);
        transactions += 1;
        if (transactions === 2) throw new Error("the worker is gone");
        return done;
      }),
  };
  expect((await its.sync(wiki, crash)).result.failed).toBe(1);
  expect(await its.tasks()).toEqual(["task 1, Open, version 1"]);
  expect((await its.sync(wiki)).result).toEqual({ done: 1, skipped: 0, failed: 0 });
  expect(await its.tasks()).toEqual([1, 2, 3].map((n) => `task ${n}, Open, version 1`));
  expect(await its.enqueued()).toHaveLength(3);
  expect(wiki.to("tasks").map(({ cursor }) => cursor)).toEqual([undefined, "c1", "c1", "c2"]);
});

test("a plugin with endless answers is continued in the next run", async () => {
  const id = await its.addDocument(await its.addIncident());
  const tasks = ({ cursor = "0" }) => ({ tasks: [], cursor: String(Number(cursor) + 1), complete: false });
  const wiki = fakeDocument({ tasks }, { slug: "wiki" });
  expect((await its.sync(wiki)).result).toEqual({ done: 1, skipped: 0, failed: 0 });
  expect(wiki.calls).toHaveLength(100);
  const [row] = await its.db.select().from(document).where(eq(document.id, id));
  expect(row!.taskCursor).toBe("100");
});

describe("an error is the fault of", () => {
  test("a single task", async () => {
    const id = await its.addDocument(await its.addIncident());
    const { result, faults } = await its.sync(
      wikiOf([
        foundTask("1", " "),
        foundTask("2", "good", { assignees: ["a@example.com", "A@example.com"] }),
        foundTask("3", "nobody", { assignees: ["\u212Aim@example.com"] }),
        foundTask("4", "never", { resolveBy: "2026-02-30" }),
        foundTask("5", "half \ud800"),
        "hunter2" as never,
        foundTask("7", "a\0"),
        foundTask("6", "twice"),
        foundTask("6", "twice, then changed"),
      ]),
    );
    expect(result).toEqual({ done: 1, skipped: 0, failed: 6 });
    expect(faults.map(({ item }) => item)).toEqual(
      ["1", "3", "4", "5", "number 6", "7"].map((n) => `document ${id}, task ${n}`),
    );
    expect(await its.tasks()).toEqual([
      "good, Open, version 1, for a",
      "twice, then changed, Open, version 1",
    ]);
  });

  test("a single document", async () => {
    const incidentId = await its.addIncident();
    const [bad, good] = [await its.addDocument(incidentId), await its.addDocument(incidentId)];
    const answers: Record<string, () => unknown> = {
      throws: () => Promise.reject(new Error("secret")),
      nonsense: () => ({ tasks: "none", cursor: "c", complete: true }),
      "says there is more": () => ({ tasks: [], cursor: "c", complete: false }),
      hangs: () => new Promise(() => {}),
    };
    const reasons: string[] = [];
    for (const [at, answer] of Object.values(answers).entries()) {
      await its.db.update(document).set({ taskCursor: null }).where(eq(document.id, bad));
      const tasks = ({ document: { id } }: { document: { id: number } }) =>
        id === bad
          ? (answer() as never)
          : { tasks: [foundTask(String(at), `good ${at}`)], cursor: `c${at}`, complete: true };
      const wiki = fakeDocument({ tasks }, { slug: "wiki", timeoutMilliseconds: 50 });
      const { result, faults } = await its.sync(wiki);
      expect(result).toMatchObject({ done: 1, failed: 1 });
      expect(faults).toMatchObject([{ item: `document ${bad}` }]);
      reasons.push(faults[0]!.reason);
    }
    expect(reasons).toEqual([
      "wiki failed: Error",
      expect.stringContaining("wiki returned an invalid answer: /tasks"),
      "wiki says that there is more, but returns no new cursor",
      "wiki did not answer within 0.05 s",
    ]);
    expect(await its.db.$count(task, eq(task.documentId, good))).toBe(4);
  });

  test("a locked incident, of which only the first documents wait for the lock", async () => {
    const [bad, good] = [await its.addIncident(), await its.addIncident()];
    const documents: number[] = [];
    for (let i = 0; i < 12; i += 1) documents.push(await its.addDocument(bad));
    await its.addDocument(good);
    const [held, end] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const other = its.db.transaction(async (tx) => {
      await tx.select().from(incident).where(eq(incident.id, bad)).for("update");
      held.resolve();
      await end.promise;
    });
    await held.promise;
    let waited = 0;
    const transaction: TaskContext["transaction"] = (work) => {
      waited += 1;
      return its.db.transaction(async (tx) => {
        await tx.execute(sql`set local lock_timeout = '200ms'`);
        return work(tx);
      });
    };
    const tasks = () => ({ tasks: [foundTask("1", "new")], cursor: "c1", complete: true });
    const wiki = fakeDocument({ tasks }, { slug: "wiki" });
    const { result, faults } = await its.sync(wiki, { transaction });
    end.resolve();
    await other;
    expect(result).toEqual({ done: 1, skipped: 0, failed: 12 });
    expect(faults.map(({ item }) => item).sort()).toEqual(documents.map((id) => `document ${id}`).sort());
    expect(waited).toBeLessThanOrEqual(4 + 1);
  });

  test("a plugin that hangs, which costs a few timeouts, not one per document", async () => {
    const incidentId = await its.addIncident();
    for (let i = 0; i < 30; i += 1) await its.addDocument(incidentId);
    const wiki = fakeDocument(
      { tasks: () => new Promise(() => {}) },
      { slug: "wiki", timeoutMilliseconds: 50 },
    );
    expect((await its.sync(wiki)).result).toEqual({ done: 0, skipped: 0, failed: 30 });
    expect(wiki.calls.length).toBeLessThan(10);
  });
});

test("while one plugin hangs, documents of another are checked at every slot", async () => {
  const incidentId = await its.addIncident();
  for (let i = 0; i < 30; i += 1) await its.addDocument(incidentId);
  const quick = await its.addDocument(incidentId, { pluginSlug: "notes" });
  const never = Promise.withResolvers<never>();
  const wiki = fakeDocument({ tasks: () => never.promise }, { slug: "wiki", timeoutMilliseconds: 60_000 });
  let asked = 0;
  const notes = fakeDocument(
    {
      tasks: () => {
        asked += 1;
        if (asked === 5) never.reject(new Error("released"));
        return { tasks: [foundTask(`${asked}`, `task ${asked}`)], cursor: `c${asked}`, complete: true };
      },
    },
    { slug: "notes" },
  );
  // Just before a slot, so that the next one is always near.
  const clock = { now: () => new Date("2026-12-01T12:00:29.950Z") };
  const { result } = await its.run(incidentTaskSync, pluginsOf(wiki, notes), { clock });
  expect(result).toEqual({ done: asked, skipped: 0, failed: 30 });
  expect(await its.db.$count(task, eq(task.documentId, quick))).toBe(asked);
});

test("an incident that is closed during the run gets no more tasks", async () => {
  const incidentId = await its.addIncident();
  const id = await its.addDocument(incidentId);
  const tasks = async () => {
    const at = its.clock.now();
    await its.db.update(incident).set({ status: "Closed", stableAt: at, closedAt: at });
    return { tasks: [foundTask("1", "late")], cursor: "c1", complete: true };
  };
  expect((await its.sync(fakeDocument({ tasks }, { slug: "wiki" }))).result).toEqual({
    done: 0,
    skipped: 1,
    failed: 0,
  });
  expect(await its.db.$count(task)).toBe(0);
  expect((await its.db.select().from(document).where(eq(document.id, id)))[0]!.taskCursor).toBeNull();
});

test("concurrent runs create each task, entry and notice once, with new people in any order", async () => {
  const incidentIds = await Promise.all([its.addIncident(), its.addIncident(), its.addIncident()]);
  for (const incidentId of incidentIds) await its.addDocument(incidentId);
  const names = Array.from({ length: 30 }, (_, i) => `p${i}@example.com`);
  const tasks = ({ document: { id } }: { document: { id: number } }) => ({
    tasks: (id % 2 ? names : names.toReversed()).map((owner, i) =>
      foundTask(String(i), `task ${i}`, { owner }),
    ),
    cursor: "c1",
    complete: true,
  });
  const runs = await Promise.all([1, 2, 3].map(() => its.sync(fakeDocument({ tasks }, { slug: "wiki" }))));
  expect(runs.flatMap(({ faults }) => faults)).toEqual([]);
  expect(runs.reduce((sum, { result }) => sum + result.done, 0)).toBe(3);
  const rows = [
    its.db.$count(task),
    its.db.$count(event),
    its.db.$count(delivery),
    its.db.$count(individual),
  ];
  expect(await Promise.all(rows)).toEqual([90, 90, 90, 30]);
});

test("a user's concurrent change of a task is kept, and so is the document's", async () => {
  await its.addDocument(await its.addIncident());
  const wiki = wikiOf([foundTask("1", "Free some disk")], [foundTask("1", "Free some more disk")]);
  await its.sync(wiki);
  const { promise: written, resolve: hasWritten } = Promise.withResolvers<void>();
  const { promise: wait, resolve: commit } = Promise.withResolvers<void>();
  const person = its.db.transaction(async (tx) => {
    await tx.update(task).set({ reminders: false, version: 2 });
    hasWritten();
    await wait;
  });
  await written;
  const synced = its.sync(wiki);
  await somebodyWaits(its.db);
  commit();
  await person;
  expect((await synced).result).toEqual({ done: 1, skipped: 0, failed: 0 });
  expect(await its.tasks()).toEqual(["Free some more disk, Open, version 3"]);
  expect((await its.db.select().from(task))[0]!.reminders).toBe(false);
});
