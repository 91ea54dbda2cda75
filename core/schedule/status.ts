import { and, count, desc, eq, gt, gte, lte, max, min, type SQL, sql } from "drizzle-orm";
import { type RunResult, run, runFault, scheduledTask, worker } from "../../drizzle/schema/index.ts";
import { after } from "../../platform/clock.ts";
import { toApi } from "../../platform/names.ts";
import { databaseNow } from "../database_clock.ts";
import type { ScheduleContext } from "./claims.ts";
import { goneSeconds } from "./heartbeat.ts";
import { type Fault, hasEnded } from "./runs.ts";
import { dueSlots, nextSlot } from "./slots.ts";
import { findTask, scheduledTasks, type TaskName } from "./tasks.ts";

type StatusContext = Pick<ScheduleContext, "db" | "databaseClock" | "config">;

/** The lag that one worker may have after another crashes: a lease, and then the run. */
const mostLagSeconds = 60;
const failureSeconds = 24 * 3600;
const shownFaults = 20;
/** This many retries take a minute. */
const manyRetries = 6;
/** A day of the most frequent task. Earlier failures are not searched for. */
const streakRuns = 2880;
/** How many faults are read, since the same item may occur in many runs. */
const readFaults = 10_000;

export type RunView = Omit<typeof run.$inferSelect, "task" | "owner">;

export interface TaskStatus {
  name: TaskName;
  /** `unknown` until a worker has seen the task, since nothing was due before. */
  state: "unknown" | "paused" | "waiting" | "running";
  since: Date | null;
  pausedAt: Date | null;
  /** The latest, by slot. */
  last: RunView | null;
  /** The slot of the last run that has ended and was not Missed. */
  lastEnded: Date | null;
  /** The slot that is due and not running. */
  due: Date | null;
  /** The next slot that will run; null while paused. Slots that were run ahead of their time do not run again. */
  next: Date | null;
  /** How long due work has been waiting for a worker. */
  lagSeconds: number;
  /** Failed and missed runs of the last 24 h. */
  failures: number;
  /** The runs and attempts that have failed since the last run that was Done, within the last 2880 runs. */
  failing: { since: Date; runs: number } | null;
  /** The share of items that failed in the last run that has ended. Null if it had none. */
  failedShare: number | null;
  /** The plugins that failed for all of their items in that run and in those before it. */
  failingPlugins: FailingPlugin[];
}

export interface FailingPlugin {
  plugin: string;
  since: Date;
  runs: number;
  /** In the last run. */
  items: number;
}

export interface ScheduleStatus {
  now: Date;
  tasks: TaskStatus[];
  workers: { id: string; host: string; pid: number; startedAt: Date; seenAt: Date; alive: boolean }[];
}

/** Reads the state of the schedule, by the database's time. */
export async function scheduleStatus(context: StatusContext): Promise<ScheduleStatus> {
  const { db, databaseClock } = context;
  const now = await databaseNow(db, databaseClock);
  const known = new Map((await db.select().from(scheduledTask)).map((row) => [row.name, row]));
  const tasks: TaskStatus[] = [];
  for (const task of scheduledTasks) tasks.push(await taskStatus(context, task, known.get(task.name), now));
  const seen = await db.select().from(worker).orderBy(desc(worker.seenAt), worker.id);
  const alive = (at: Date) => now.getTime() - at.getTime() <= goneSeconds * 1000;
  return { now, tasks, workers: seen.map((row) => ({ ...row, alive: alive(row.seenAt) })) };
}

/** Describes what is wrong with the schedule. Empty when it keeps up. */
export function laggards({ now, tasks, workers }: ScheduleStatus): string[] {
  const late = tasks.filter(({ lagSeconds }) => lagSeconds > mostLagSeconds);
  // A slot runs only once: until that time comes, none of it is due, and so nothing is late.
  const isAhead = (time: Date | null) => time !== null && time > after(now, mostLagSeconds);
  const ahead = tasks.filter(({ last, since }) =>
    [last?.slot ?? null, last?.leaseUntil ?? null, since].some(isAhead),
  );
  const failing = tasks.filter(keepsFailing);
  return [
    ...(workers.some(({ alive }) => alive) ? [] : [`no worker was seen in the last ${goneSeconds} s`]),
    ...late.map(({ name, lagSeconds }) => `${name} is ${Math.floor(lagSeconds)} s late`),
    ...ahead.map(({ name }) => `${name} is stalled: the database's clock was ahead (svc scheduler rewind)`),
    ...failing.map(
      ({ name, failing }) =>
        `${name} has failed ${failing!.runs === 1 ? "once" : `${failing!.runs} times`} since ${failing!.since.toISOString()}`,
    ),
    ...pluginsThatKeepFailing({ tasks }).map(
      ({ task, plugin, since }) => `the plugin ${plugin} fails in ${task} since ${since.toISOString()}`,
    ),
  ];
}

/** A short task's single failure is over at its next slot. A daily task's lasts a day. */
export function keepsFailing({ name, state, failing }: TaskStatus): boolean {
  return failing !== null && isLasting({ name, state }, failing);
}

function isLasting({ name, state }: Pick<TaskStatus, "name" | "state">, { runs }: { runs: number }): boolean {
  return state !== "paused" && (runs > 1 || "daily" in findTask(name)!.timing);
}

/** In the same way, plugins that fail for all of their items. */
export function pluginsThatKeepFailing({
  tasks,
}: Pick<ScheduleStatus, "tasks">): (FailingPlugin & { task: TaskName })[] {
  return tasks.flatMap((task) =>
    task.failingPlugins.filter((one) => isLasting(task, one)).map((one) => ({ ...one, task: task.name })),
  );
}

/** An item that a run could not process, with the slot of the last such run. */
export interface SeenFault extends Fault {
  slot: Date;
}

/**
 * Returns the faults of the last finished run, and those of other items in the 24 h before: some items are processed
 * again only when they change. The newest first, each item once, up to a limit.
 */
export async function recentFaults(
  { db }: Pick<StatusContext, "db">,
  { name, lastEnded: last }: Pick<TaskStatus, "name" | "lastEnded">,
  now: Date,
): Promise<SeenFault[]> {
  if (!last) return [];
  const { task, slot, item, reason } = runFault;
  const dayAgo = after(now, -failureSeconds);
  const newest = db
    .select({ slot, item, reason })
    .from(runFault)
    .where(and(eq(task, name), gte(slot, last < dayAgo ? last : dayAgo), lte(slot, last)))
    .orderBy(desc(slot))
    .limit(readFaults)
    .as("newest");
  const once = db
    .selectDistinctOn([newest.item])
    .from(newest)
    .orderBy(newest.item, desc(newest.slot))
    .as("once");
  return db.select().from(once).orderBy(desc(once.slot), once.item).limit(shownFaults);
}

async function taskStatus(
  { db, config }: Pick<StatusContext, "db" | "config">,
  task: (typeof scheduledTasks)[number],
  known: typeof scheduledTask.$inferSelect | undefined,
  now: Date,
): Promise<TaskStatus> {
  const ofTask = eq(run.task, task.name);
  const lastOf = (condition?: SQL) =>
    db.select().from(run).where(and(ofTask, condition)).orderBy(desc(run.slot)).limit(1);
  const [[last], [lastScheduled], [lastEnded], [running], failures] = await Promise.all([
    lastOf(),
    lastOf(eq(run.trigger, "schedule")),
    lastOf(hasEnded),
    db
      .select({ leaseUntil: run.leaseUntil })
      .from(run)
      .where(and(ofTask, eq(run.state, "Running"))),
    db.$count(
      run,
      and(
        ofTask,
        // Literals that match the partial index, and a time that is known at planning: otherwise PostgreSQL would guess
        // a third of all rows.
        sql`${run.state} in ('Failed', 'Missed')`,
        gt(run.finishedAt, after(now, -failureSeconds)),
      ),
    ),
  ]);
  const since = known?.since ?? now;
  const isPaused = known?.pausedAt != null;
  const from = lastScheduled && lastScheduled.slot > since ? lastScheduled.slot : since;
  const { slot, skipped } = isPaused
    ? { slot: undefined, skipped: undefined }
    : dueSlots(task.timing, config.timezone, from, now);
  const due = running ? undefined : (skipped?.from ?? slot);
  // While the task is paused, nobody claims a dead worker's run.
  const leaseUntil = running?.leaseUntil ?? since;
  const isRunning = running && (!isPaused || leaseUntil > now);
  const leftSince = leaseUntil > since ? leaseUntil : since;
  const waitingSince = isPaused ? undefined : running ? leftSince : due;
  // A lease that is longer than usual was taken while the database's clock was ahead: nobody takes that run over yet.
  const heldUntil = running && leaseUntil > after(now, mostLagSeconds) ? leaseUntil : now;
  return {
    name: task.name,
    state: !known ? "unknown" : isRunning ? "running" : isPaused ? "paused" : "waiting",
    since: known?.since ?? null,
    pausedAt: known?.pausedAt ?? null,
    last: last ? view(last) : null,
    lastEnded: lastEnded?.slot ?? null,
    due: due ?? null,
    next: isPaused ? null : nextSlot(task.timing, config.timezone, latest(now, from, heldUntil)),
    lagSeconds: waitingSince ? Math.max(0, (now.getTime() - waitingSince.getTime()) / 1000) : 0,
    failures,
    failing: withRetries(
      lastEnded?.state === "Failed" ? await failureStreak(db, task.name) : null,
      last?.state === "Running" ? last : undefined,
    ),
    failedShare: lastEnded ? shareOf(lastEnded.result) : null,
    failingPlugins: lastEnded ? await failingPlugins(db, task.name, lastEnded.result) : [],
  };
}

function shareOf({ done = 0, skipped = 0, failed = 0 }: RunResult): number | null {
  const all = done + skipped + failed;
  return all === 0 ? null : failed / all;
}

/** Since when the plugins that failed in a run have failed, without a run in between in which they did not. */
async function failingPlugins(
  db: StatusContext["db"],
  name: TaskName,
  { failing_plugins: failing = {} }: RunResult,
): Promise<FailingPlugin[]> {
  if (Object.keys(failing).length === 0) return [];
  const rows = await db
    .select({
      at: run.finishedAt,
      state: run.state,
      plugins: sql<RunResult["failing_plugins"]>`${run.result} -> 'failing_plugins'`,
    })
    .from(run)
    .where(and(eq(run.task, name), hasEnded))
    .orderBy(desc(run.slot))
    .limit(streakRuns);
  return Object.entries(failing).map(([plugin, items]) => {
    const end = rows.findIndex(({ state, plugins }) => state === "Done" && plugins?.[plugin] === undefined);
    const streak = rows
      .slice(0, end < 0 ? rows.length : end)
      .filter(({ plugins }) => plugins?.[plugin] !== undefined);
    return { plugin, items, runs: streak.length, since: streak.at(-1)!.at! };
  });
}

function latest(...times: readonly Date[]): Date {
  return new Date(Math.max(...times.map((time) => time.getTime())));
}

/** Returns the failed runs since the last one that was Done. */
async function failureStreak(db: StatusContext["db"], name: TaskName): Promise<TaskStatus["failing"]> {
  const { task, slot, state, finishedAt } = run;
  const recent = db
    .$with("recent")
    .as(
      db
        .select({ slot, state, finishedAt })
        .from(run)
        .where(eq(task, name))
        .orderBy(desc(slot))
        .limit(streakRuns),
    );
  const lastDone = db
    .select({ slot: max(recent.slot) })
    .from(recent)
    .where(eq(recent.state, "Done"));
  const [streak] = await db
    .with(recent)
    .select({ since: min(recent.finishedAt), runs: count() })
    .from(recent)
    .where(and(eq(recent.state, "Failed"), gt(recent.slot, sql`coalesce((${lastDone}), '-infinity')`)));
  return streak?.since ? { since: streak.since, runs: streak.runs } : null;
}

/** Counts a run that keeps being postponed: it fails, too, and blocks the next one. */
function withRetries(
  streak: TaskStatus["failing"],
  running: Pick<RunView, "slot" | "result"> | undefined,
): TaskStatus["failing"] {
  const retries = running?.result.retries?.count ?? 0;
  if (!running || retries < manyRetries) return streak;
  return { since: streak?.since ?? running.slot, runs: (streak?.runs ?? 0) + retries };
}

function view(row: typeof run.$inferSelect): RunView {
  const { task: _, owner: __, ...shown } = row;
  return shown;
}

/** The status for programs. */
export function asJson({ tasks, ...status }: ScheduleStatus) {
  return toApi({ ...status, tasks: tasks.map(({ lastEnded: _, ...task }) => task) });
}
