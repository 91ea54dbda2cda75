import { afterAll, beforeAll, expect, test } from "bun:test";
import { and, asc, eq, gt, sql } from "drizzle-orm";
import type { Database, Transaction } from "../../../drizzle/client.ts";
import { openSql } from "../../../drizzle/client.ts";
import { conversation, document, event, incident } from "../../../drizzle/schema/index.ts";
import { fakeConversation, fakeDocument } from "../../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../../plugins/fake/plugins.ts";
import { inTheWay } from "../../../tests/support/database/blocked.ts";
import { type FlowTest, rita, startFlowTest } from "../../../tests/support/domain/flow.ts";
import { until } from "../../../tests/support/process/until.ts";
import { keepTasks } from "../../sync/document_tasks.ts";
import { createDocument } from "../document/create.ts";
import { removeDocument } from "../document/remove.ts";
import { startText } from "../document/start_text.ts";
import { updateDocument } from "../document/update.ts";
import { noteOnTimeline } from "../event/note.ts";
import { findIncident } from "../incident/incident.ts";
import { updateIncident } from "../lifecycle/update.ts";
import { createLink } from "../link/create.ts";
import { inviteParticipant } from "../participant/invite.ts";
import { remind } from "../reminder/remind.ts";
import { writeReport } from "../report/write.ts";
import { createTask } from "../task/create.ts";
import { removeTask } from "../task/remove.ts";
import { updateTask } from "../task/update.ts";
import { eventChannel, recordEvent } from "./event.ts";

// The events of one incident are committed in the order of their ids, and hints of them are sent after that.

let flow: FlowTest;
beforeAll(async () => {
  flow = await startFlowTest();
});
afterAll(() => flow[Symbol.asyncDispose]());

const plugins = pluginsOf();
const kept = { pluginSlug: null, resourceId: null };
const text = { name: "Notes", description: "", resourceType: "reference", weblink: null, termIds: [] };

const nobody = { owner: null, assignees: [] };

const newFound = {
  description: "Ask",
  status: "Open" as const,
  creator: null,
  owner: null,
  assignees: [],
  resolveBy: null,
  deleted: false,
};

const newDocument = (incidentId: number) =>
  createDocument(flow.context(plugins), rita, { ...text, ...kept, incidentId });
const newTask = (incidentId: number) =>
  createTask(flow.context(plugins), rita, {
    incidentId,
    documentId: null,
    description: "Look",
    ...nobody,
    reminders: true,
  });

/** Records an event, and takes a while to commit. */
async function slowly(db: Database, incidentId: number): Promise<void> {
  await db.transaction(async (tx) => {
    await recordEvent(tx, {
      incidentId,
      at: flow.clock.now(),
      actor: "system",
      kind: "step.done",
      description: "slow",
      data: {},
    });
    await tx.execute(sql`select pg_sleep(${Math.random() * 0.02})`);
  });
}

test("a reader that polls `id > cursor` misses nothing of what many writers record", async () => {
  const incidentId = await flow.report(plugins);
  const rounds = 12;
  const contexts = [flow.context(plugins), flow.another(plugins)];
  const writers = contexts.flatMap((context) => [
    () => noteOnTimeline(context, rita, { incidentId, description: "seen" }),
    () => slowly(context.db as Database, incidentId),
    () => slowly(context.db as Database, incidentId),
    () => slowly(context.db as Database, incidentId),
    async () => {
      const made = await newDocument(incidentId);
      await updateDocument(context, rita, { ...text, id: made.id, version: made.version });
    },
    async () => {
      const made = await newTask(incidentId);
      await updateTask(context, rita, { ...made, ...nobody, status: "Resolved" });
    },
  ]);
  const reader = flow.another(plugins).db;
  const seen: number[] = [];
  const readOn = async () => {
    const rows = await reader
      .select({ id: event.id })
      .from(event)
      .where(and(eq(event.incidentId, incidentId), gt(event.id, seen.at(-1) ?? 0)))
      .orderBy(asc(event.id));
    seen.push(...rows.map(({ id }) => id));
  };
  let running = true;
  const writing = Promise.all(
    writers.map(async (write) => {
      for (let round = 0; round < rounds; round++) await write();
    }),
  ).finally(() => {
    running = false;
  });
  while (running) await readOn();
  await writing;
  await readOn();
  const all = await reader
    .select({ id: event.id })
    .from(event)
    .where(eq(event.incidentId, incidentId))
    .orderBy(asc(event.id));
  expect(all.length).toBeGreaterThan(writers.length * rounds);
  expect(seen).toEqual(all.map(({ id }) => id));
});

/** Holds an incident as another writer does that has taken an id and has not committed. */
const holding = (incidentId: number) => async (tx: Transaction) => {
  await tx.select({ id: incident.id }).from(incident).where(eq(incident.id, incidentId)).for("no key update");
};

test("a change that finds its incident locked waits before it locks anything else", async () => {
  const incidentId = await flow.report(plugins);
  const document = await newDocument(incidentId);
  const task = await newTask(incidentId);
  const context = flow.context(plugins);
  const ended = await inTheWay<unknown>(
    flow.db,
    async (tx) => {
      await holding(incidentId)(tx);
    },
    () => updateDocument(context, rita, { ...text, id: document.id, version: document.version }),
    () => updateTask(context, rita, { ...task, ...nobody, status: "Resolved" }),
    // The holder of the incident's lock could lock them too: whoever waits holds neither.
    async () => {
      const rows = await flow.another(plugins).db.execute<{ id: string }>(sql`
        select id from document where id = ${document.id} for update nowait`);
      expect(rows).toHaveLength(1);
      await flow
        .another(plugins)
        .db.execute(sql`select id from task where id = ${task.id} for update nowait`);
    },
  );
  expect(ended.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "fulfilled"]);
});

test("changes that wait for one in progress get later times", async () => {
  const incidentId = await flow.report(plugins);
  const other = await flow.report(plugins);
  const [doc, gone] = [await newDocument(incidentId), await newDocument(incidentId)];
  const todo = await newTask(incidentId);
  const [chat, keeper] = [fakeConversation(), fakeDocument()];
  keeper.answer({ create: () => ({ resourceId: "text" }), get: () => ({ name: "Notes" }) });
  const chosen = pluginsOf(chat, keeper);
  const at = flow.clock.now();
  const [awaited] = await flow.db
    .insert(document)
    .values({
      name: "Awaited",
      resourceType: "incident",
      incidentId,
      pluginSlug: keeper.plugin.slug,
      createdAt: at,
      updatedAt: at,
    })
    .returning();
  await flow.db
    .insert(conversation)
    .values({ incidentId, pluginSlug: chat.plugin.slug, externalId: "room", createdAt: at });
  const place = { ...doc, incidentId, pluginSlug: keeper.plugin.slug, taskCursor: null };
  const found = { ...newFound, externalId: "1" };
  const before = await findIncident(flow.db, rita, incidentId);
  flow.clock.advance(3 * 3600);
  const admin = { ...rita, admin: true };
  const now = () => {
    flow.clock.advance(1);
    return flow.clock.now();
  };
  const [one, two] = [flow.context(chosen), flow.another(chosen)].map((its) => ({
    ...its,
    clock: { now },
  }));
  const address = "127.0.0.1";
  let first: Transaction;
  const made = await inTheWay<unknown>(
    flow.db,
    async (tx) => {
      first = tx;
      await holding(incidentId)(tx);
    },
    () => (two!.db as Database).transaction((tx) => remind(tx, two!, [incidentId])),
    () => inviteParticipant(one!, rita, { incidentId, email: "dana@example.com", roles: ["commander"] }),
    () => noteOnTimeline(one!, rita, { incidentId, description: "seen" }),
    () => writeReport(one!, rita, { incidentId, conditions: "c", actions: "a", needs: "n" }),
    () => createDocument(one!, rita, { ...text, ...kept, incidentId }),
    () => updateDocument(one!, rita, { ...text, id: doc.id, version: doc.version }),
    () => startText(one!, rita, awaited!, null),
    () => updateIncident(one!, rita, { ...before!, status: "Stable" }),
    () =>
      (two!.db as Database).transaction((tx) =>
        keepTasks(tx, place, { found: [found], cursor: "1", clock: { now } }),
      ),
    () => removeDocument(two!, admin, { id: gone.id, address }),
    () => removeTask(two!, admin, { id: todo.id, address }),
    () => createLink(two!, rita, { incidentId, linkedId: other, kind: "related" }),
    () =>
      recordEvent(first, {
        incidentId,
        at: now(),
        actor: "system",
        kind: "step.done",
        description: "first",
        data: {},
      }),
  );
  expect(made.filter(({ status }) => status === "rejected")).toEqual([]);
  const events = await flow.db
    .select({ at: event.at })
    .from(event)
    .where(eq(event.incidentId, incidentId))
    .orderBy(asc(event.id));
  const times = events.map(({ at }) => at.toISOString());
  expect(times).toEqual(times.toSorted());
});

test("hints of events are sent after their commit, and not if it is rolled back", async () => {
  const incidentId = await flow.report(plugins);
  const heard: string[] = [];
  const listener = openSql(flow.url, { max: 1 });
  await listener.listen(eventChannel, (hint) => void heard.push(hint));
  const record = (tx: Transaction | Database, description: string) =>
    recordEvent(tx, {
      incidentId,
      at: flow.clock.now(),
      actor: "system",
      kind: "step.done" as const,
      description,
      data: { 'quoted "': "a\\b" },
    });
  const first = await record(flow.db, "first");
  // Perhaps together with those of other tests.
  await until("earlier events to be announced", () =>
    heard.some((hint) => ` ${hint} `.includes(` ${incidentId} ${first} `)),
  );
  heard.length = 0;
  const undone = flow.db.transaction(async (tx) => {
    await record(tx, "undone");
    throw new Error("undone");
  });
  await expect(undone).rejects.toThrow("undone");
  let recorded = 0;
  await flow.db.transaction(async (tx) => {
    recorded = await record(tx, "done");
    await tx.transaction(async (inner) => {
      recorded = await record(inner, "in a savepoint");
    });
    await Bun.sleep(50);
    expect(heard).toEqual([]);
  });
  await until("the event to be announced", () => heard.length > 0);
  expect(heard).toEqual([`${incidentId} ${recorded}`]);
  const outside = await record(flow.db, "outside a transaction");
  await until("the event to be announced", () => heard.length > 1);
  expect(heard).toEqual([`${incidentId} ${recorded}`, `${incidentId} ${outside}`]);
  const [row] = await flow.db.select().from(event).where(eq(event.id, outside));
  expect(row).toMatchObject({ source: "core", data: { 'quoted "': "a\\b" } });
  await listener.end();
});

test("an event of an incident that was deleted meanwhile is not found", async () => {
  const incidentId = await flow.report(plugins);
  const [recorded] = await inTheWay<unknown>(
    flow.db,
    (tx) => tx.delete(incident).where(eq(incident.id, incidentId)),
    () => slowly(flow.db, incidentId),
  );
  expect(recorded).toMatchObject({ status: "rejected", reason: { code: "not_found" } });
});
