import type { Claim } from "../core/schedule/claims.ts";
import { lastChance } from "../core/schedule/decide.ts";
import {
  type Ending,
  type Fault,
  finishRun,
  giveBack,
  putOff,
  renewLease,
  runLost,
  type TaskResult,
  whileHeld,
} from "../core/schedule/runs.ts";
import type { TaskDefinition } from "../core/schedule/tasks.ts";
import { errorCode, operatorsError, transience, withoutQuery } from "../drizzle/database_error.ts";
import { after } from "../platform/clock.ts";
import { SvcError } from "../platform/errors.ts";
import type { WorkerDeps } from "./deps.ts";
import type { ScheduledTask, TaskContext } from "./task.ts";
import { inTime, pause } from "./time.ts";

/** A task of the schedule with the work that it does. */
export interface Work {
  definition: TaskDefinition;
  task: ScheduledTask;
}

export interface Outcome {
  /** `put off`: it has ended for a reason that passes, and any worker makes the next attempt. */
  state: "Done" | "Failed" | "put off" | "lost" | "given back";
  result?: TaskResult;
  error?: string;
}

const retryMilliseconds = 500;
const patienceMilliseconds = 5000;
/** Before the next attempt: a second, and twice as long each time. */
const longestBackoffSeconds = 60;

/**
 * Does the work of a claimed run and records how it ended, whatever the task does: one that throws, or that hangs until
 * its timeout, has failed. When `giveUp` aborts, the run is given back for another worker. One that ends for a reason that
 * passes is put off, as long as its slot is worth being run; one that was started by hand fails, since somebody waits.
 */
export async function runClaim(
  deps: WorkerDeps,
  work: Work,
  claim: Claim,
  giveUp: AbortSignal,
): Promise<Outcome> {
  const run = () => runToItsEnd(deps, work, claim, giveUp);
  return await (deps.observed ? deps.observed.run(claim, run) : run());
}

async function runToItsEnd(
  deps: WorkerDeps,
  { definition, task }: Work,
  claim: Claim,
  giveUp: AbortSignal,
): Promise<Outcome> {
  const { log, schedule } = deps;
  const about = { task: claim.task, slot: claim.slot.toISOString(), attempt: claim.attempt };
  const stop = new AbortController();
  const recorded = new AbortController();
  const faults: Fault[] = [];
  const postponed: Fault[] = [];
  const cut = Promise.withResolvers<"timeout" | "lost" | "given back">();
  const end = (why: "timeout" | "lost" | "given back") => {
    cut.resolve(why);
    stop.abort();
  };
  const timer = setTimeout(() => end("timeout"), definition.timeoutSeconds * 1000);
  const abandon = () => end("given back");
  giveUp.addEventListener("abort", abandon, { once: true });
  if (giveUp.aborted) abandon();
  let gone = false;
  const leased = keepLease(deps, claim, recorded.signal).then((lost) => {
    gone = lost;
    if (lost) end("lost");
  });
  const record = async (how: () => Promise<boolean>): Promise<boolean> => {
    // Until it is recorded, or another worker's.
    while (!gone && !giveUp.aborted) {
      try {
        return await how();
      } catch (err) {
        log.warn({ err, ...about }, "cannot record the end of a run yet");
        await pause(retryMilliseconds, recorded.signal);
      }
    }
    return false;
  };
  try {
    const context = contextOf(deps, definition, claim, stop.signal, { faults, postponed });
    const ended = await Promise.race([attempt(task, context), cut.promise]);
    if (ended === "given back") {
      await inTime(
        patienceMilliseconds,
        giveBack(schedule(), claim, { reason: "Its worker was stopped" }),
      ).catch((err: unknown) => log.warn({ err, ...about }, "cannot give a run back; its lease will expire"));
      log.info(about, "run given back");
      return { state: "given back" };
    }
    const reason = typeof ended === "object" ? reasonToRetry(ended, postponed) : undefined;
    const seconds = Math.min(2 ** (claim.retries ?? 0), longestBackoffSeconds);
    if (reason !== undefined && isWorthRetrying(deps, definition, claim, seconds)) {
      // What of the attempt is still under way shall not be beside the next one.
      stop.abort();
      const isPutOff = await record(() => putOff(schedule(), claim, { seconds, reason, faults }));
      log.warn({ ...about, reason, seconds }, isPutOff ? "run put off" : "run lost to another worker");
      return { state: isPutOff ? "put off" : "lost" };
    }
    const ending = ended === "lost" ? undefined : endingOf(ended, definition, [...faults, ...postponed]);
    if (!ending || !(await record(() => finishRun(schedule(), claim, ending)))) {
      log.warn(about, "run lost to another worker");
      return { state: "lost" };
    }
    const { error } = ending;
    if (typeof ended === "object" && "thrown" in ended)
      log.error({ err: withoutQuery(ended.thrown), ...about }, "run failed");
    else if (error) log.error({ ...about, error }, "run failed");
    else log.info({ ...about, ...ending.result }, "run done");
    return error === undefined ? { state: "Done", result: ending.result } : { state: "Failed", error };
  } finally {
    clearTimeout(timer);
    giveUp.removeEventListener("abort", abandon);
    stop.abort();
    recorded.abort();
    await leased;
  }
}

function contextOf(
  { db, time, config, log, plugins, schedule }: WorkerDeps,
  { timeoutSeconds }: TaskDefinition,
  claim: Claim,
  signal: AbortSignal,
  { faults, postponed }: Record<"faults" | "postponed", Fault[]>,
): TaskContext {
  return {
    ...{ db: db(), clock: time, config, log, plugins, signal, slot: claim.slot },
    transaction: async (work) => {
      const assertOurs = () => {
        if (signal.aborted) throw runLost();
      };
      assertOurs();
      return whileHeld({ ...schedule(), db: db() }, claim, timeoutSeconds, (tx) => {
        // It may have waited for a connection, while the run ended and its slot was claimed anew by this very worker.
        assertOurs();
        return work(tx);
      });
    },
    fault: (item, reason) => void faults.push({ item, reason }),
    postpone: (item, reason) => void postponed.push({ item, reason }),
  };
}

/** Never rejects: nobody may be waiting any more. */
async function attempt(
  task: ScheduledTask,
  context: TaskContext,
): Promise<{ result: TaskResult } | { thrown: unknown }> {
  try {
    return { result: await task.run(context) };
  } catch (thrown) {
    return { thrown };
  }
}

function endingOf(
  ended: { result: TaskResult } | { thrown: unknown } | "timeout",
  { timeoutSeconds }: TaskDefinition,
  faults: readonly Fault[],
): Ending {
  if (ended === "timeout") return { error: `It took longer than ${timeoutSeconds} s`, faults };
  if ("thrown" in ended) return { error: reasonOf(ended.thrown), faults };
  const { done, skipped, failed } = ended.result;
  return { result: { done, skipped, failed }, faults };
}

/** Why another attempt of the run may do what this one could not; undefined where it would do the same. */
function reasonToRetry(
  ended: { result: TaskResult } | { thrown: unknown },
  [first, ...others]: readonly Fault[],
): string | undefined {
  if ("thrown" in ended) return transience(ended.thrown) && reasonOf(ended.thrown);
  if (!first) return undefined;
  const more = others.length > 0 ? `, and ${others.length} more` : "";
  return `${first.item}: ${first.reason}${more}`;
}

function isWorthRetrying(
  { time, config }: Pick<WorkerDeps, "time" | "config">,
  { timing }: TaskDefinition,
  { slot, trigger }: Claim,
  seconds: number,
): boolean {
  return trigger === "schedule" && after(time.now(), seconds) < lastChance(timing, config.timezone, slot);
}

/** Renews the lease every third of it. @returns whether the run was lost; false when `signal` has aborted */
async function keepLease(
  { schedule }: Pick<WorkerDeps, "schedule">,
  claim: Claim,
  signal: AbortSignal,
): Promise<boolean> {
  const lease = schedule().leaseSeconds * 1000;
  let until = performance.now() + lease;
  let wait = lease / 3;
  while (!signal.aborted) {
    await pause(wait, signal);
    if (signal.aborted) break;
    const sent = performance.now();
    try {
      if (!(await inTime(lease / 3, renewLease(schedule(), claim)))) return !signal.aborted;
      until = sent + lease;
      wait = lease / 3;
    } catch {
      // The database is away. The lease goes on for a while without it.
      if (performance.now() > until) return true;
      wait = lease / 30;
    }
  }
  return false;
}

/** Why a run failed, fit to be kept: nothing of a message that is not ours. The log has the rest. */
function reasonOf(thrown: unknown): string {
  const cause = withoutQuery(thrown);
  const known = operatorsError(cause);
  if (known instanceof SvcError) return known.detail;
  const code = errorCode(cause);
  if (transience(cause) === "outage") return `The connection to PostgreSQL failed (${code})`;
  if (transience(cause)) return `Another transaction was in the way (${code})`;
  const kind = cause instanceof Error ? cause.name : typeof cause;
  return `Something unexpected went wrong (${code === undefined ? kind : `${kind}, ${code}`}); the worker's log has more`;
}
