import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { asc, eq, gt } from "drizzle-orm";
import { attemptDelivery } from "../../../core/incident/delivery/attempt.ts";
import { deliveries } from "../../../core/outbox/deliver.ts";
import { claimWork } from "../../../core/outbox/work.ts";
import type { Plugins } from "../../../core/plugin/choose.ts";
import { claimDue } from "../../../core/schedule/claims.ts";
import type { Database } from "../../../drizzle/client.ts";
import * as schema from "../../../drizzle/schema/index.ts";
import { loadExample } from "../../../trial/example/load.ts";
import type { WorkerDeps } from "../../../worker/deps.ts";
import { runClaim, type Work } from "../../../worker/run.ts";
import { worksOf } from "../../../worker/tasks/index.ts";
import { DatabaseTime } from "../../../worker/time.ts";
import type { TestClock } from "../clock.ts";
import { type Example, readLoadedExample } from "./example.ts";
import { changesOf, takePicture } from "./golden_views.ts";
import { type PluginTest, startPluginTest } from "./plugins.ts";
import { scheduleOf } from "./schedule.ts";

const { delivery, individual, incident, run, runFault, task } = schema;
const timezone = "Europe/Berlin";

/** Database time from the test's clock, which stands still during a run. */
class StillTime extends DatabaseTime {
  constructor(private readonly clock: TestClock) {
    super();
  }
  override now(): Date {
    return this.clock.now();
  }
}

/** A worker on the example data that records everything it does. */
export interface GoldenWorker {
  context: PluginTest["context"] & { plugins: Plugins };
  example: Example;
  /** Writes a file that sources read. */
  write(name: string, text: string): Promise<void>;
  /** Moves the clock, runs `act`, and records the story. */
  happens(at: string, story: string, act: () => Promise<unknown>): Promise<void>;
  /** Moves the clock, runs the tasks that are due in turn, and sends due deliveries. */
  works(at: string): Promise<void>;
  /** The record so far. */
  record(): string;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function startGoldenWorker(start: string): Promise<GoldenWorker> {
  const directory = await mkdtemp(join(tmpdir(), "svc-golden-"));
  const its = await startPluginTest({
    SVC_TIMEZONE: timezone,
    SVC_PUBLIC_URL: "https://svc.example.com",
    SVC_PLUGIN_TERM: "term-source",
    SVC_PLUGIN_APPLICATION: "backstage-catalog",
    SVC_PLUGIN_TERM_SOURCE_LOCATIONS: join(directory, "glossary.json"),
    SVC_PLUGIN_BACKSTAGE_CATALOG_LOCATIONS: join(directory, "catalog-info.yaml"),
  });
  const { context, plugins } = its;
  const { clock, config, log } = context;
  const db = context.db as Database;
  const moveTo = (at: string) => clock.advance((Date.parse(at) - clock.now().getTime()) / 1000);
  moveTo(start);
  await loadExample(db, clock.now());
  const example = await readLoadedExample(db);
  const deps: WorkerDeps = {
    schedule: () => scheduleOf(db, clock, "a worker", timezone),
    db: () => db,
    reopen: () => {},
    time: new StillTime(clock),
    config,
    log,
    plugins,
  };
  const lines: string[] = [];
  const section = (story: string) => lines.push("", `=== ${localTime(clock.now())}: ${story}`);
  const names = newNames(its, example);
  const seen = new Set<string>();

  async function runOne(work: Work): Promise<void> {
    const { name } = work.definition;
    const before = await takePicture(db);
    for (;;) {
      const claimed = await claimDue(deps.schedule(), work.definition);
      if (!("claim" in claimed)) break;
      await runClaim(deps, work, claimed.claim, new AbortController().signal);
    }
    const ended = await runs(db, name, seen);
    if (ended.length === 0) return;
    lines.push(...ended);
    lines.push(...changesOf(before, await takePicture(db)));
    await names.learn();
    lines.push(...(await messages(its, seen)).map(names.inPlace));
  }

  return {
    context: { ...context, plugins },
    example,
    write: (name, text) => writeFile(join(directory, name), text),
    happens: async (at, story, act) => {
      moveTo(at);
      section(story);
      await act();
    },
    works: async (at) => {
      moveTo(at);
      section("a worker runs what is due");
      for (const work of worksOf()) await runOne(work);
      const before = await takePicture(db);
      lines.push("", await send(its));
      lines.push(...changesOf(before, await takePicture(db)));
    },
    record: () => `${lines.join("\n").replaceAll(`${directory}/`, "").trim()}\n`,
    [Symbol.asyncDispose]: async () => {
      await its[Symbol.asyncDispose]();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** The new runs of a task, with their faults. */
async function runs(db: Database, name: string, seen: Set<string>): Promise<string[]> {
  const rows = await db.select().from(run).where(eq(run.task, name)).orderBy(asc(run.slot));
  const faults = await db.select().from(runFault).where(eq(runFault.task, name)).orderBy(asc(runFault.item));
  return rows.flatMap((one) => {
    const key = `${name} ${one.slot.toISOString()}`;
    if (seen.has(key)) return [];
    seen.add(key);
    const its = faults.filter(({ slot }) => slot.getTime() === one.slot.getTime());
    return [
      "",
      `--- ${name}, slot ${localTime(one.slot)}: ${endOf(one)}`,
      ...its.map(({ item, reason }) => `fault: ${item}: ${reason}`),
    ];
  });
}

function localTime(at: Date): string {
  const format = { dateStyle: "full", timeStyle: "medium", timeZone: timezone } as const;
  return new Intl.DateTimeFormat("en-GB", format).format(at);
}

function endOf({ state, error, result }: typeof run.$inferSelect): string {
  const { missed_slots: missed, ...counts } = result;
  return [
    state,
    ...(error === null ? [] : [error]),
    ...Object.entries(counts).map(([what, count]) => `${count} ${what}`),
    ...(missed ? [`stands for ${missed.count} ${missed.count === 1 ? "slot" : "slots"} before it`] : []),
  ].join(", ");
}

/** New tasks get ids in a random order, because documents are read concurrently. The record calls them `new-1` and so on. */
function newNames({ context: { db } }: PluginTest, example: Example) {
  const names = new Map<number, string>();
  const known = Math.max(...example.tasks.map(({ id }) => id));
  return {
    async learn() {
      const rows = await db
        .select({ id: task.id })
        .from(task)
        .where(gt(task.id, known))
        .orderBy(asc(task.documentId), asc(task.description));
      for (const { id } of rows) if (!names.has(id)) names.set(id, `new-${names.size + 1}`);
    },
    inPlace: (line: string) =>
      line.replace(/(\/tasks\/|\/task-)(\d+)/g, (_, before, id) => before + (names.get(Number(id)) ?? id)),
  };
}

/** The new deliveries, grouped by text. */
async function messages({ context: { db } }: PluginTest, seen: Set<string>): Promise<string[]> {
  const rows = await db
    .select({ row: delivery, to: individual.name, incident: incident.name })
    .from(delivery)
    .innerJoin(incident, eq(incident.id, delivery.incidentId))
    .leftJoin(individual, eq(individual.id, delivery.individualId))
    .orderBy(delivery.incidentId, delivery.individualId, delivery.subject, delivery.text);
  const unseen = rows.filter(({ row }) => !seen.has(row.key));
  const same = Map.groupBy(unseen, ({ row }) => JSON.stringify([row.subject, row.text]));
  return [...same.values()].flatMap((group) => {
    const { subject, text } = group[0]!.row;
    const heads = group.map(({ row: { key, pluginSlug }, to, incident }) => {
      seen.add(key);
      return `  to ${to ?? "everybody"}, by ${pluginSlug} of ${incident}: ${key}`;
    });
    const words = [`Subject: ${subject}`, "", ...text.split("\n")];
    return ["message:", ...heads, ...words.map((line) => `  | ${line}`.trimEnd())];
  });
}

/** Attempts the deliveries that are due. @returns the outcomes */
async function send({ context, plugins }: PluginTest): Promise<string> {
  const its = { ...context, db: context.db as Database, plugins };
  const all = { among: undefined, order: [delivery.key], limit: 10_000 };
  const due = await claimWork(its, deliveries, all);
  const counts = new Map<string, number>();
  for (const claim of due.sort((a, b) => (a.key < b.key ? -1 : 1))) {
    const attempt = await attemptDelivery(its, claim);
    counts.set(attempt, (counts.get(attempt) ?? 0) + 1);
  }
  return `sent: ${[...counts].map(([what, count]) => `${count} ${what}`).join(", ") || "nothing"}`;
}
