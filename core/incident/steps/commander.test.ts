import { afterAll, beforeAll, expect, test } from "bun:test";
import { and, eq, isNull } from "drizzle-orm";
import {
  incidentPriority,
  incidentType,
  individual,
  participant,
  participantRole,
  recommendation,
  service,
} from "../../../drizzle/schema/index.ts";
import { Refused } from "../../../platform/errors.ts";
import type { Script } from "../../../plugins/fake/fake.ts";
import { fakeParticipant } from "../../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../../plugins/fake/plugins.ts";
import { type FlowTest, startFlowTest } from "../../../tests/support/domain/flow.ts";
import type { Plugins } from "../../plugin/choose.ts";
import { lockIncident } from "../incident/lock.ts";
import { join } from "../participant/join.ts";
import { runFlow } from "./run.ts";

let flow: FlowTest;
const types: Record<string, number> = {};
beforeAll(async () => {
  flow = await startFlowTest();
  const stamps = { createdAt: flow.clock.now(), updatedAt: flow.clock.now() };
  for (const [name, pluginSlug] of [
    ["known", "fake-participant"],
    ["unassigned", null],
    ["elsewhere", "gone"],
  ] as const) {
    const externalId = pluginSlug && name;
    const [at] = await flow.db
      .insert(service)
      .values({ name, pluginSlug, externalId, ...stamps })
      .returning();
    const [type] = await flow.db
      .insert(incidentType)
      .values({ name, commanderServiceId: at!.id, ...stamps })
      .returning();
    types[name] = type!.id;
  }
});
afterAll(() => flow[Symbol.asyncDispose]());

/** Every open commander. There must be one. */
async function commanders(id: number): Promise<string[]> {
  const rows = await flow.db
    .select({ email: individual.email })
    .from(participantRole)
    .innerJoin(participant, eq(participant.id, participantRole.participantId))
    .innerJoin(individual, eq(individual.id, participant.individualId))
    .where(
      and(
        eq(participantRole.incidentId, id),
        eq(participantRole.role, "commander"),
        isNull(participantRole.renouncedAt),
      ),
    );
  return rows.map(({ email }) => email);
}

async function reported(plugins: Plugins, type: string | undefined, more = {}): Promise<number> {
  const id = await flow.report(plugins, { ...(type && { incidentTypeId: types[type] }), ...more });
  await runFlow(flow.context(plugins), id);
  return id;
}

const step = "reported:commander";
const resolve = () => [];

test("the reporter commands, without a plugin call, if there is no service or the priority says so", async () => {
  using fake = fakeParticipant({ resolve });
  const plugins = pluginsOf(fake);
  const without = await reported(plugins, undefined);
  const stamps = { createdAt: flow.clock.now(), updatedAt: flow.clock.now() };
  const [info] = await flow.db
    .insert(incidentPriority)
    .values({ name: "Info", reminderHours: 24, reporterCommands: true, ...stamps })
    .returning();
  const quiet = await reported(plugins, "known", { incidentPriorityId: info!.id });
  for (const id of [without, quiet]) {
    expect(await commanders(id)).toEqual(["rita@example.com"]);
    expect(await flow.step(id, step)).toMatchObject({ state: "Done", attempts: 1 });
    expect(await flow.told(id, "role.assumed")).toEqual(["role.assumed core: rita became commander"]);
  }
});

test("the person on call commands, and the reason is kept", async () => {
  using fake = fakeParticipant({ resolve, onCall: () => ({ email: "Olga@example.com", name: "Olga" }) });
  const id = await reported(pluginsOf(fake), "known");
  expect(await commanders(id)).toEqual(["olga@example.com"]);
  expect(await flow.told(id, "role.assumed", "step.done", "step.failed")).toContain(
    "role.assumed fake-participant: Olga became commander",
  );
  expect(fake.to("onCall")).toMatchObject([
    { service: { name: "known", externalId: "known" }, at: flow.clock.now().toISOString() },
  ]);
  const [why] = await flow.db.select().from(recommendation).where(eq(recommendation.incidentId, id));
  expect(why).toMatchObject({
    pluginSlug: "fake-participant",
    reasons: [{ kind: "service", name: "known" }],
  });
});

const person = { email: "olga@example.com" };
const failures: [string, string, Script<"participant">["onCall"], string][] = [
  ["nobody is on call", "known", () => null, "Nobody is on call for known, according to fake-participant"],
  [
    "the plugin throws",
    "known",
    () => {
      throw new TypeError("hunter2");
    },
    "fake-participant failed: TypeError",
  ],
  ["the plugin hangs", "known", () => new Promise(() => {}), "fake-participant did not answer within 0.03 s"],
  [
    "the address is invalid",
    "known",
    () => ({ email: "ol(ga@example.com" }),
    "fake-participant returned a person without a valid name or address",
  ],
  ["the service has no plugin", "unassigned", undefined, "No plugin knows who is on call for unassigned"],
  [
    "the plugin is not enabled",
    "elsewhere",
    undefined,
    "gone is not enabled, so it is unknown who is on call for elsewhere",
  ],
];
test.each(failures)("%s: the reporter stands in, and the step fails", async (_, type, onCall, error) => {
  using fake = fakeParticipant({ resolve, onCall }, { timeoutMilliseconds: 30 });
  const id = await reported(pluginsOf(fake), type);
  expect(await commanders(id)).toEqual(["rita@example.com"]);
  expect(await flow.step(id, step)).toMatchObject({ state: "Failed", error });
});

const never = () => {
  throw new Refused("the rota is closed");
};
test.each([
  ["nobody is on call at first", () => null],
  ["the plugin says that it would fail every time", never],
])("the person on call takes over later from a reporter who stood in: %s", async (_, first) => {
  using fake = fakeParticipant({ resolve, onCall: [first, () => person] });
  const plugins = pluginsOf(fake);
  const id = await reported(plugins, "known");
  flow.clock.advance(30);
  await runFlow(flow.context(plugins), id);
  expect(await commanders(id)).toEqual(["olga@example.com"]);
  expect(await flow.step(id, step)).toMatchObject({ state: "Done", error: null });
});

/** A person takes command: Wilma, and then perhaps the reporter again. */
async function takeCommand(id: number, email: string) {
  await flow.db.transaction(async (tx) => {
    await lockIncident(tx, "worker", id);
    for (const who of ["wilma@example.com", email]) {
      const values = { name: who, email: who, createdAt: flow.clock.now(), updatedAt: flow.clock.now() };
      await tx.insert(individual).values(values).onConflictDoNothing();
      const [row] = await tx.select().from(individual).where(eq(individual.email, who));
      const change = { incidentId: id, at: flow.clock.now(), actor: "wilma@example.com" };
      await join(tx, { ...change, individualId: row!.id, roles: ["commander"] });
    }
  });
}

test.each(["wilma@example.com", "rita@example.com"])(
  "a commander chosen by a person stays: %s",
  async (email) => {
    using fake = fakeParticipant({ resolve, onCall: [() => null] });
    const plugins = pluginsOf(fake);
    const id = await reported(plugins, "known");
    await takeCommand(id, email);
    flow.clock.advance(30);
    await runFlow(flow.context(plugins), id);
    expect(await commanders(id)).toEqual([email]);
    // The plugin is not called in vain.
    expect(await flow.step(id, step)).toMatchObject({ state: "Done" });
  },
);

test.each([
  ["and it names somebody", () => person],
  ["and it names nobody", () => null],
])("also if the person chose during the plugin call, %s", async (_, onCall) => {
  using fake = fakeParticipant({ resolve });
  const plugins = pluginsOf(fake);
  const id = await flow.report(plugins, { incidentTypeId: types.known });
  fake.answer({ onCall: () => takeCommand(id, "wilma@example.com").then(onCall) });
  await runFlow(flow.context(plugins), id);
  expect(await commanders(id)).toEqual(["wilma@example.com"]);
});

test("also if the person was faster than the step that would make the reporter commander", async () => {
  const id = await flow.report(pluginsOf());
  await takeCommand(id, "wilma@example.com");
  await runFlow(flow.context(pluginsOf()), id);
  expect(await commanders(id)).toEqual(["wilma@example.com"]);
});

test("the commander stays when the step runs again in another shift", async () => {
  using fake = fakeParticipant({ resolve, onCall: [() => person] });
  const plugins = pluginsOf(fake);
  const id = await reported(plugins, "known");
  await flow.again(id, step);
  await runFlow(flow.context(plugins), id);
  expect(await commanders(id)).toEqual(["olga@example.com"]);
  expect(await flow.step(id, step)).toMatchObject({ state: "Done" });
});
