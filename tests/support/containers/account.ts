import { and, eq, ne, sql } from "drizzle-orm";
import { slotsBetween } from "../../../core/schedule/slots.ts";
import { scheduledTasks } from "../../../core/schedule/tasks.ts";
import { type Database, openDatabase } from "../../../drizzle/client.ts";
import {
  conversationMessage,
  delivery,
  event,
  flowStep,
  incident,
  run,
  scheduledTask,
} from "../../../drizzle/schema/index.ts";
import { until } from "../process/until.ts";
import type { Load } from "./load.ts";

/** A message of a dead worker is retried within a few minutes. */
const patienceSeconds = 420;

/** The state of everything that was acknowledged, and of the schedule; `[]` means no problem. */
export interface Account {
  /** Incidents, notes and messages that do not exist exactly once, with their counts. */
  notOnce: string[];
  /** Steps of incidents that did not run, and messages that were not delivered. */
  undone: string[];
  /** How often messages were received: minimum and maximum. */
  received: [number, number];
  /** Tasks with slots that neither ran nor are covered by a later run. */
  slots: string[];
  /** Runs that failed, with the reason. */
  failed: string[];
  /** Slots that a later run covers, because no worker was available. */
  passedOver: number;
}

/** Checks once all work has finished. `log` is the receiver's log. */
export async function accountOf(
  { databaseUrl, acknowledged }: Load,
  log: () => Promise<string>,
): Promise<Account> {
  const { db, close } = openDatabase(databaseUrl, 2);
  const undone = () => undoneIn(db).catch((error: Error) => [error.message]);
  // Unfinished work is part of the result.
  await until("an end", async () => (await undone()).length === 0, patienceSeconds).catch(() => {});
  const reported = await db.select({ text: incident.title }).from(incident);
  const noted = await db.select({ text: event.description }).from(event).where(eq(event.kind, "note"));
  // The time follows the subject if a message waited long, as behind one whose worker was cut off.
  const subject = sql<string>`split_part(${conversationMessage.text}, ${"\n\n"}, 1)`;
  const said = await db.select({ text: subject }).from(conversationMessage);
  const account = {
    notOnce: [
      ...notOnce(acknowledged.incidents, reported),
      ...notOnce(acknowledged.notes, noted),
      ...notOnce(acknowledged.deliveries, said),
    ],
    undone: await undone(),
    received: await receivedOf(db, await log()),
    ...(await scheduleIn(db)),
  };
  await close();
  return account;
}

function notOnce(wanted: readonly string[], rows: readonly { text: string }[]): string[] {
  const found = Map.groupBy(rows, ({ text }) => text);
  return wanted
    .map((text) => ({ text, count: found.get(text)?.length ?? 0 }))
    .filter(({ count }) => count !== 1)
    .map(({ text, count }) => `${text}: ${count}`);
}

async function undoneIn(db: Database): Promise<string[]> {
  const steps = await db.select().from(flowStep).where(ne(flowStep.state, "Done"));
  const messages = await db.select().from(delivery).where(ne(delivery.state, "Done"));
  return [
    ...steps.map(({ incidentId, step, state, error }) => `${incidentId} ${step}: ${state} ${error ?? ""}`),
    ...messages.map(({ key, state, error }) => `${key}: ${state} ${error ?? ""}`),
  ];
}

async function scheduleIn(db: Database): Promise<Pick<Account, "slots" | "failed" | "passedOver">> {
  const slots: string[] = [];
  const failed: string[] = [];
  let passedOver = 0;
  for (const { name, timing } of scheduledTasks) {
    const runs = await db.select().from(run).where(eq(run.task, name)).orderBy(run.slot);
    const [known] = await db.select().from(scheduledTask).where(eq(scheduledTask.name, name));
    const last = runs.at(-1);
    failed.push(...runs.filter(({ error }) => error !== null).map(({ error }) => `${name}: ${error}`));
    if (!known || !last) continue;
    const stoodFor = runs.reduce((sum, { result }) => sum + (result.missed_slots?.count ?? 0), 0);
    const { count } = slotsBetween(timing, "UTC", known.since, last.slot);
    if (runs.length + stoodFor !== count)
      slots.push(`${name}: ${runs.length} ran, ${stoodFor} passed over, of ${count}`);
    passedOver += stoodFor;
  }
  return { slots, failed, passedOver };
}

async function receivedOf(db: Database, log: string): Promise<[number, number]> {
  const { key, pluginSlug, task } = delivery;
  const ofLoad = and(eq(pluginSlug, "webhook"), eq(task, "load"));
  const sent = await db.select({ key }).from(delivery).where(ofLoad);
  const ids = Map.groupBy(log.matchAll(/msg_[0-9a-f]{32}/g), ([id]) => id);
  const counts = sent.map((one) => {
    const hash = new Bun.CryptoHasher("sha256").update(one.key).digest("hex").slice(0, 32);
    return ids.get(`msg_${hash}`)?.length ?? 0;
  });
  return [Math.min(...counts), Math.max(...counts)];
}
