import { and, asc, eq, inArray } from "drizzle-orm";
import { readConfig } from "../../../core/config.ts";
import { planSteps } from "../../../core/incident/flow/plan.ts";
import { reportIncident } from "../../../core/incident/lifecycle/report.ts";
import type { Plugins } from "../../../core/plugin/choose.ts";
import type { AppContext } from "../../../core/plugin/context.ts";
import { type Database, openDatabase } from "../../../drizzle/client.ts";
import * as schema from "../../../drizzle/schema/index.ts";
import { TestClock } from "../clock.ts";
import { createTestDatabase } from "../database/database.ts";
import { recordingLog } from "../log.ts";
import { until } from "../process/until.ts";
import { signedIn } from "./actor.ts";

/** Incidents and their steps, without HTTP. */
export interface FlowTest {
  db: Database;
  url: string;
  clock: TestClock;
  /** All log lines. */
  logged: string[];
  typeId: number;
  priorityId: number;
  /** The context of one process. `another` has separate connections. */
  context(plugins: Plugins): AppContext;
  another(plugins: Plugins): AppContext;
  /** Reports an incident by rita@example.com, without running its steps. */
  report(plugins: Plugins, more?: Partial<Parameters<typeof reportIncident>[2]>): Promise<number>;
  /** The step of an incident. */
  step(incidentId: number, step: string): Promise<typeof schema.flowStep.$inferSelect>;
  /** Makes a step due, like a retry. */
  again(incidentId: number, step: string): Promise<void>;
  states(incidentId: number): Promise<Record<string, string>>;
  /** The timeline's events of these kinds, as `kind source: description`. */
  told(incidentId: number, ...kinds: string[]): Promise<string[]>;
  individual(name: string): Promise<number>;
  [Symbol.asyncDispose](): Promise<void>;
}

export const rita = signedIn("rita");

export async function startFlowTest(): Promise<FlowTest> {
  const database = await createTestDatabase();
  const clients = [openDatabase(database.url, 10)];
  const { db } = clients[0]!;
  const clock = new TestClock();
  const { log, logged } = recordingLog();
  const config = { ...readConfig({}), publicUrl: "https://svc.example.com", domain: "example.com" };
  const stamps = { createdAt: clock.now(), updatedAt: clock.now() };
  const [type] = await db
    .insert(schema.incidentType)
    .values({ name: "Outage", ...stamps })
    .returning();
  const [priority] = await db
    .insert(schema.incidentPriority)
    .values({ name: "High", rank: 3, reminderHours: 2, ...stamps })
    .returning();
  const test: FlowTest = {
    db,
    url: database.url,
    clock,
    logged,
    typeId: type!.id,
    priorityId: priority!.id,
    context: (plugins) => ({ db, clock, config, log, plugins }),
    another: (plugins) => {
      const client = openDatabase(database.url, 10);
      clients.push(client);
      return { ...test.context(plugins), db: client.db };
    },
    report: async (plugins, more = {}) => {
      const { typeId: incidentTypeId, priorityId: incidentPriorityId } = test;
      const text = { title: "Disk full", description: "There was a data loss" };
      const wanted = { ...text, incidentTypeId, incidentPriorityId, ...more };
      return (await reportIncident(test.context(plugins), rita, wanted)).id;
    },
    step: async (incidentId, step) => {
      const steps = await stepsOf(db, incidentId);
      const found = steps.find((one) => one.step === step);
      if (!found) throw new Error(`no step ${step} among ${steps.map((one) => one.step).join(", ")}`);
      return found;
    },
    again: (incidentId, step) =>
      db.transaction((tx) => planSteps(tx, { incidentId, at: clock.now() }, [step])),
    states: async (incidentId) =>
      Object.fromEntries((await stepsOf(db, incidentId)).map(({ step, state }) => [step, state])),
    told: async (incidentId, ...kinds) => {
      const { event } = schema;
      const rows = await db.select().from(event).where(eq(event.incidentId, incidentId)).orderBy(event.id);
      return rows
        .filter(({ kind }) => kinds.includes(kind))
        .map(({ kind, source, description }) => `${kind} ${source}: ${description}`);
    },
    individual: async (name) => {
      const values = { name, email: `${name.toLowerCase()}@example.com`, ...stamps };
      const [row] = await db.insert(schema.individual).values(values).returning();
      return row!.id;
    },
    [Symbol.asyncDispose]: async () => {
      for (const { close } of clients) await close();
      await database[Symbol.asyncDispose]();
    },
  };
  return test;
}

function stepsOf(db: Database, incidentId: number) {
  const { flowStep } = schema;
  return db.select().from(flowStep).where(eq(flowStep.incidentId, incidentId)).orderBy(asc(flowStep.step));
}

/** Waits for the steps of an incident, which a server may finish after its answer. Some may have failed. */
export async function flowEnded(db: Database, incidentId: number): Promise<void> {
  const { flowStep: step } = schema;
  const isGoing = and(eq(step.incidentId, incidentId), inArray(step.state, ["Pending", "Running"]));
  await until("the end of its steps", async () => (await db.$count(step, isGoing)) === 0);
}
