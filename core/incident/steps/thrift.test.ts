import { afterAll, beforeAll, expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { openDatabase, type Sql } from "../../../drizzle/client.ts";
import {
  fakeConversation,
  fakeDocument,
  fakeParticipant,
  fakeParticipantGroup,
} from "../../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../../plugins/fake/plugins.ts";
import { noteAsked, noteStatements } from "../../../tests/support/database/statements.ts";
import { type FlowTest, startFlowTest } from "../../../tests/support/domain/flow.ts";
import { claimDue, renew, writeAs } from "../flow/lease.ts";
import { incidentFacts } from "../incident/facts.ts";
import { runFlow } from "./run.ts";

// The cost of a report for the database, when everybody reports at once.

let flow: FlowTest;
beforeAll(async () => {
  flow = await startFlowTest();
});
afterAll(() => flow[Symbol.asyncDispose]());

const nothing = () => {};

test("a report's steps take a bounded number of statements", async () => {
  using people = fakeParticipant({ resolve: () => [] });
  using documents = fakeDocument({ create: ({ document: { id } }) => ({ resourceId: `r${id}` }) });
  using chat = fakeConversation({ create: () => ({}), add: nothing, send: nothing });
  using group = fakeParticipantGroup({ create: () => ({}), add: nothing });
  const plugins = pluginsOf(people, documents, chat, group);
  await runFlow(flow.context(plugins), await flow.report(plugins));
  const id = await flow.report(plugins);
  const statements = noteStatements(flow.db);
  await runFlow(flow.context(plugins), id);
  expect(new Set(Object.values(await flow.states(id)))).toEqual(new Set(["Done"]));
  expect(statements.length).toBeLessThan(78);
});

test("an incident's facts for plugins take one statement", async () => {
  const plugins = pluginsOf();
  const id = await flow.report(plugins);
  await incidentFacts(flow.context(plugins), id);
  const statements = noteStatements(flow.db);
  await incidentFacts(flow.context(plugins), id);
  expect(statements).toHaveLength(1);
});

test("steps of other incidents are not read, even if PostgreSQL expects all to be done", async () => {
  const plugins = pluginsOf();
  await flow.report(plugins);
  await flow.db.execute(sql`delete from flow_step`);
  await flow.db.execute(sql`
    with copies as (
      insert into incident (title, description, incident_type_id, incident_priority_id, reported_at, created_at, updated_at)
      select title, description, incident_type_id, incident_priority_id, reported_at, created_at, updated_at
      from (select * from incident limit 1) as one, generate_series(1, 1000) returning id, reported_at)
    insert into flow_step (incident_id, step, state, finished_at)
    select id, 'reported:' || n, 'Done', reported_at from copies, generate_series(1, 5) as n`);
  await flow.db.execute(sql`vacuum analyze flow_step`);
  const id = await flow.report(plugins);
  const asked = noteAsked(flow.db);
  await runFlow(flow.context(plugins), id);
  const ofSteps = asked.filter(({ text }) => /(update|from) "flow_step"/.test(text));
  expect(ofSteps.length).toBeGreaterThan(2);
  const { $client } = flow.db as typeof flow.db & { $client: Sql };
  for (const { text, values } of ofSteps) {
    const plan = JSON.stringify(await $client.unsafe(`explain (format json) ${text}`, values as string[]));
    expect(plan).toContain("flow_step_pk");
    expect(plan).not.toMatch(/flow_step_due_idx|Seq Scan/);
  }
});

test("steps of one incident wait for each other without a connection", async () => {
  const { url } = flow;
  const client = openDatabase(url, 2);
  try {
    const plugins = pluginsOf(fakeConversation({}), fakeParticipantGroup({}));
    const context = { ...flow.context(plugins), db: client.db };
    const id = await flow.report(plugins);
    const [first, ...others] = await claimDue(context, id);
    const [held, entered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const writes = [
      writeAs(context, first!, async () => {
        entered.resolve();
        await held.promise;
      }),
      ...others.map((claim) => writeAs(context, claim, () => Promise.resolve())),
    ];
    await entered.promise;
    // Every waiting write would have its connection by now.
    for (let nth = 0; nth < 3; nth += 1) await client.db.execute(sql`select 1`);
    held.resolve();
    await Promise.all(writes);
    expect(others.length).toBeGreaterThan(1);
  } finally {
    await client.close();
  }
});

test("an almost new lease is not renewed", async () => {
  const plugins = pluginsOf();
  const context = flow.context(plugins);
  const id = await flow.report(plugins);
  const [claim] = await claimDue(context, id);
  const { leaseUntil } = claim!;
  const asked = noteStatements(flow.db);
  flow.clock.advance(5);
  await renew(context, claim!);
  expect([claim!.leaseUntil, asked]).toEqual([leaseUntil, []]);
  flow.clock.advance(1);
  await renew(context, claim!);
  expect(claim!.leaseUntil.getTime() - leaseUntil.getTime()).toBe(6000);
  expect((await flow.step(id, "reported:commander")).leaseUntil).toEqual(claim!.leaseUntil);
});
