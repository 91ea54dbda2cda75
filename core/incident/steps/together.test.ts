import { afterAll, beforeAll, expect, mock, test } from "bun:test";
import { and, eq, sql } from "drizzle-orm";
import { type Database, openDatabase, type Sql } from "../../../drizzle/client.ts";
import { changeTransactions } from "../../../drizzle/connection/transactions.ts";
import { flowStep, incident } from "../../../drizzle/schema/index.ts";
import { after } from "../../../platform/clock.ts";
import { builtinPlugins } from "../../../plugins/builtin.ts";
import type { Fake } from "../../../plugins/fake/fake.ts";
import { fakeConversation, fakeParticipant, fakeParticipantGroup } from "../../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../../plugins/fake/plugins.ts";
import { type FlowTest, startFlowTest } from "../../../tests/support/domain/flow.ts";
import { readConfig } from "../../config.ts";
import { LeaseLost } from "../../outbox/work.ts";
import { choosePlugins } from "../../plugin/choose.ts";
import type { AppContext } from "../../plugin/context.ts";
import type { PluginType } from "../../plugin/methods.ts";
import { createRegistry } from "../../plugin/registry.ts";
import { claimDue, runAs } from "../flow/lease.ts";
import { runDueFlows, runFlow } from "./run.ts";

// Steps whose plugins use nothing but our database run in one transaction.

let flow: FlowTest;
beforeAll(async () => {
  flow = await startFlowTest();
});
afterAll(() => flow[Symbol.asyncDispose]());

const nothing = () => {};
const talking = { create: () => ({}), add: nothing, send: nothing };
const grouping = { create: () => ({}), add: nothing };
const groupStep = "reported:group:fake-participant-group";

/** The same plugin, as one that uses nothing but our database. `counts` are its calls within a transaction. */
function inDatabase<T extends PluginType>(fake: Fake<T>) {
  const { methods } = fake.plugin;
  const counted = {
    ...fake,
    count: 0,
    plugin: {
      ...fake.plugin,
      methodsWithin: () => {
        counted.count += 1;
        return methods;
      },
    },
  };
  return counted;
}

/** Whether another connection may lock the incident now. */
const isFree = async (id: number) => {
  const free = await flow.db
    .select({ id: incident.id })
    .from(incident)
    .where(eq(incident.id, id))
    .for("no key update", { skipLocked: true });
  return free.length > 0;
};

test("they hold the incident from the start, and end at once", async () => {
  const seen: unknown[] = [];
  let id = 0;
  const see = async () => void seen.push([await isFree(id), await flow.states(id)]);
  const resolved = Promise.withResolvers<void>();
  const resolve = async () => {
    await see();
    resolved.resolve();
    return [];
  };
  // Nothing has been written before.
  const create = async () => {
    await resolved.promise;
    return {};
  };
  const plugins = pluginsOf(
    inDatabase(fakeParticipant({ resolve })),
    inDatabase(fakeParticipantGroup({ create, add: see })),
  );
  id = await flow.report(plugins);
  await runFlow(flow.context(plugins), id);
  const running = { "reported:participants": "Running", "reported:commander": "Running" };
  expect(seen).toEqual([
    [false, { ...running, [groupStep]: "Running" }],
    [false, { ...running, [groupStep]: "Running" }],
  ]);
  expect(new Set(Object.values(await flow.states(id)))).toEqual(new Set(["Done"]));
});

test("if one fails, the others are done on their own, and its failure is recorded once", async () => {
  const chat = inDatabase(fakeConversation(talking));
  const group = inDatabase(
    fakeParticipantGroup({
      create: () => {
        throw new Error("full");
      },
    }),
  );
  const plugins = pluginsOf(chat, group);
  const id = await flow.report(plugins);
  flow.logged.length = 0;
  await runFlow(flow.context(plugins), id);
  expect(await flow.states(id)).toEqual({
    "reported:commander": "Done",
    "reported:conversation:fake-conversation": "Done",
    [groupStep]: "Failed",
  });
  expect(await flow.told(id, "step.failed")).toHaveLength(1);
  expect(await flow.told(id, "conversation.created", "role.assumed")).toHaveLength(2);
  expect(flow.logged.filter((line) => line.includes("a plugin failed"))).toHaveLength(1);
});

test("the transaction does not end before all of them have", async () => {
  let id = 0;
  const free: boolean[] = [];
  const create = async () => {
    // The other step has failed by now.
    for (let nth = 0; nth < 20; nth += 1) await flow.db.execute(sql`select 1`);
    free.push(await isFree(id));
    return {};
  };
  const chat = inDatabase(fakeConversation({ ...talking, create }));
  const fails = () => {
    throw new Error("full");
  };
  const plugins = pluginsOf(chat, inDatabase(fakeParticipantGroup({ create: fails })));
  id = await flow.report(plugins);
  await runFlow(flow.context(plugins), id);
  expect(free[0]).toBe(false);
});

test("none of them writes if another process has taken one over", async () => {
  const plugins = pluginsOf(fakeConversation(talking), fakeParticipantGroup(grouping));
  const id = await flow.report(plugins);
  const context = flow.context(plugins);
  const claims = await claimDue(context, id);
  expect(claims).toHaveLength(3);
  await flow.db
    .update(flowStep)
    .set({ leaseUntil: after(claims[0]!.leaseUntil, 1) })
    .where(and(eq(flowStep.incidentId, id), eq(flowStep.step, groupStep)));
  const work = mock(() => Promise.resolve());
  const running = runAs(context, claims, work);
  expect(await running.catch((error: unknown) => error)).toBeInstanceOf(LeaseLost);
  expect(work).not.toHaveBeenCalled();
});

test("a step waits for those that use more than our database", async () => {
  const people = fakeParticipant({
    resolve: () => [{ individual: { email: "ada@example.com" }, reasons: [] }],
  });
  const chat = inDatabase(fakeConversation(talking));
  const plugins = pluginsOf(people, chat, inDatabase(fakeParticipantGroup(grouping)));
  const id = await flow.report(plugins);
  await runFlow(flow.context(plugins), id);
  expect(chat.to("add").map(({ people }) => people.map(({ email }) => email))).toEqual([
    ["rita@example.com", "ada@example.com"],
  ]);
  expect(chat.to("send")[0]!.message.text).toContain("Commander: ");
});

test("a step that did not end in its first attempt runs on its own", async () => {
  const chat = inDatabase(fakeConversation(talking));
  const plugins = pluginsOf(chat, inDatabase(fakeParticipantGroup(grouping)));
  const id = await flow.report(plugins);
  // Its process died.
  await flow.db.update(flowStep).set({ attempts: 1 }).where(eq(flowStep.incidentId, id));
  await runFlow(flow.context(plugins), id);
  expect(new Set(Object.values(await flow.states(id)))).toEqual(new Set(["Done"]));
  expect(chat.count).toBe(0);
});

test("two incidents at a time occupy a connection for their steps", async () => {
  let running = 0;
  const seen: number[] = [];
  const create = async () => {
    running += 1;
    for (let nth = 0; nth < 20; nth += 1) await flow.db.execute(sql`select 1`);
    seen.push(running);
    running -= 1;
    return {};
  };
  const plugins = pluginsOf(inDatabase(fakeParticipantGroup({ ...grouping, create })));
  const ids = await Promise.all([1, 2, 3, 4, 5].map(() => flow.report(plugins)));
  await Promise.all(ids.map((id) => runFlow(flow.context(plugins), id)));
  expect(seen).toHaveLength(5);
  expect(Math.max(...seen)).toBeLessThanOrEqual(2);
});

test("whichever statement a process dies at, another one does the steps once", async () => {
  const registry = createRegistry([{ origin: "svc", exported: builtinPlugins, builtin: true }]);
  const deps = { fetch, clock: flow.clock, log: flow.context(pluginsOf()).log };
  const withBuiltin = async (context: AppContext) => ({
    ...context,
    plugins: await choosePlugins(registry, readConfig({}), {}, { ...deps, context }),
  });
  const alive = await withBuiltin(flow.another(pluginsOf()));
  const made = async (id: number) => {
    const [row] = await flow.db.execute(sql`
      select (select array_agg(kind || ' ' || description order by kind, description) from event where incident_id = ${id}) as events,
        (select count(*) from conversation_message m join conversation c on c.id = m.conversation_id where c.incident_id = ${id}) as messages,
        (select count(*) from document where incident_id = ${id}) as documents`);
    return JSON.stringify(row).replaceAll(new RegExp(`inc-${id}\\b`, "gi"), "INC");
  };
  const undisturbed = await flow.report(alive.plugins);
  await runFlow(alive, undisturbed);
  for (let nth = 1, died = true; died; nth += 4) {
    const id = await flow.report(alive.plugins);
    const { db, close } = openDatabase(flow.url, 10);
    const hasDied = dieAt(db, nth);
    await runFlow(await withBuiltin({ ...alive, db }), id);
    died = hasDied();
    await close(0);
    flow.clock.advance(61);
    await runDueFlows(alive);
    expect([nth, await made(id)]).toEqual([nth, await made(undisturbed)]);
    expect(new Set(Object.values(await flow.states(id)))).toEqual(new Set(["Done"]));
  }
});

/** Ends the connection at this statement of a transaction, after which nothing reaches the database any more. */
function dieAt(db: Database, nth: number): () => boolean {
  const { $client } = db as Database & { $client: Sql };
  let left = nth;
  const dying = (scope: Pick<Sql, "unsafe">, counts: boolean) => {
    const ask = scope.unsafe.bind(scope) as (...args: unknown[]) => unknown;
    scope.unsafe = ((...args: unknown[]) => {
      if (counts) left -= 1;
      return left > 0 ? ask(...args) : ask("select pg_terminate_backend(pg_backend_pid())");
    }) as Sql["unsafe"];
  };
  dying($client, false);
  changeTransactions($client, (scope) => dying(scope, true));
  return () => left <= 0;
}
