import { and, eq, isNull, type SQL, sql } from "drizzle-orm";
import { readConfig } from "../../../core/config.ts";
import {
  type Attempt,
  type AttemptContext,
  attemptDelivery,
} from "../../../core/incident/delivery/attempt.ts";
import { type DeliveryClaim, deliver, deliveries, type Outgoing } from "../../../core/outbox/deliver.ts";
import { claimWork } from "../../../core/outbox/work.ts";
import type { Plugins } from "../../../core/plugin/choose.ts";
import type { AppContext } from "../../../core/plugin/context.ts";
import type { Fault } from "../../../core/schedule/runs.ts";
import { type Database, openDatabase } from "../../../drizzle/client.ts";
import * as schema from "../../../drizzle/schema/index.ts";
import type { ScheduledTask, TaskContext } from "../../../worker/task.ts";
import { TestClock } from "../clock.ts";
import { createTestDatabase } from "../database/database.ts";
import { recordingLog } from "../log.ts";
import { type IncidentIds, insertIncident } from "./incident.ts";
import { taskContextOf } from "./task_context.ts";

export const at = new Date("2026-12-01T12:00:00.000Z");

/** A database with one Open incident: alice commands it, bob reported it, and its conversation is in "channel". */
export interface Outbox {
  url: string;
  db: Database;
  clock: TestClock;
  ids: IncidentIds;
  logged: string[];
  context(plugins: Plugins): AppContext & { clock: TestClock };
  deliver(plugins: Plugins, ...outgoing: Outgoing[]): ReturnType<typeof deliver>;
  /** Runs a task like a worker; `faults` are `item: reason`. */
  run(
    task: ScheduledTask,
    plugins: Plugins,
    overrides?: Partial<TaskContext>,
  ): Promise<{ result: Awaited<ReturnType<ScheduledTask["run"]>>; faults: string[] }>;
  all(): Promise<(typeof schema.delivery.$inferSelect)[]>;
  /** Claims all waiting deliveries, like a worker after their pauses, in the order of their keys. */
  claim(): Promise<DeliveryClaim[]>;
  /** Deletes all messages. */
  empty(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function startOutbox(poolSize = 6): Promise<Outbox> {
  const database = await createTestDatabase();
  const { db, close } = openDatabase(database.url, poolSize);
  const clock = new TestClock(at);
  const ids = await insertIncident(db, at);
  const { log, logged } = recordingLog();
  const config = { ...readConfig({}), publicUrl: "https://svc.example.com", databaseUrl: database.url };
  const outbox: Outbox = {
    url: database.url,
    db,
    clock,
    ids,
    logged,
    context: (plugins) => ({ db, clock, config, log, plugins }),
    deliver: (plugins, ...outgoing) => db.transaction((tx) => deliver(tx, { clock, plugins }, outgoing)),
    run: async (task, plugins, overrides = {}) => {
      const faults: Fault[] = [];
      const context = taskContextOf(outbox.context(plugins), faults);
      const result = await task.run({ ...context, ...overrides });
      return { result, faults: faults.map(({ item, reason }) => `${item}: ${reason}`) };
    },
    all: () => db.select().from(schema.delivery).orderBy(schema.delivery.key),
    claim: () => claimAll({ db, clock, config }),
    empty: async () => void (await db.execute(sql`truncate delivery`)),
    [Symbol.asyncDispose]: async () => {
      await close();
      await database[Symbol.asyncDispose]();
    },
  };
  return outbox;
}

/** Claims all waiting deliveries, like a worker after their pauses, in the order of their keys. */
export async function claimAll(
  { db, clock, config }: Pick<AttemptContext, "db" | "clock" | "config">,
  among?: SQL,
): Promise<DeliveryClaim[]> {
  const { delivery } = schema;
  const waits = and(among, eq(delivery.state, "Queued"), isNull(delivery.leaseUntil));
  await db.update(delivery).set({ dueAt: clock.now() }).where(waits);
  const all = { among, order: [delivery.key], limit: 100_000 };
  const claims = await claimWork({ db, clock, config }, deliveries, all);
  return claims.sort((a, b) => (a.key < b.key ? -1 : 1));
}

/** Attempts every waiting delivery once, like a worker. */
export async function attemptAll(context: AttemptContext, among?: SQL): Promise<Attempt[]> {
  const attempts: Attempt[] = [];
  for (const claim of await claimAll(context, among)) attempts.push(await attemptDelivery(context, claim));
  return attempts;
}

/** Marks every waiting delivery as delivered. */
export async function endDeliveries(db: Database, finishedAt: Date): Promise<void> {
  const { delivery } = schema;
  const done = { state: "Done" as const, leaseUntil: null, dueAt: null, finishedAt };
  await db.update(delivery).set(done).where(eq(delivery.state, "Queued"));
}

/** Inserts another incident like that of the outbox, with a conversation in each of these plugins. */
export async function insertSecond(
  { db, ids }: Pick<Outbox, "db" | "ids">,
  values: Partial<typeof schema.incident.$inferInsert> = {},
  slugs: readonly string[] = ["channel"],
): Promise<number> {
  const {
    id: _,
    name: __,
    search: ___,
    ...like
  } = (await db.select().from(schema.incident).where(eq(schema.incident.id, ids.incidentId)))[0]!;
  const [row] = await db
    .insert(schema.incident)
    .values({ ...like, ...values })
    .returning({ id: schema.incident.id });
  const incidentId = row!.id;
  for (const pluginSlug of slugs)
    await db.insert(schema.conversation).values({ incidentId, pluginSlug, createdAt: at });
  return incidentId;
}

export async function addParticipant(
  { db }: Pick<Outbox, "db">,
  incidentId: number,
  individualId: number,
  role?: (typeof schema.participantRoles)[number],
): Promise<number> {
  const [row] = await db
    .insert(schema.participant)
    .values({ incidentId, individualId, joinedAt: at })
    .returning({ id: schema.participant.id });
  const participantId = row!.id;
  if (role)
    await db.insert(schema.participantRole).values({ participantId, incidentId, role, assumedAt: at });
  return participantId;
}
