import type { Claim } from "../core/schedule/claims.ts";
import { lastChance } from "../core/schedule/decide.ts";
import {
  type Ending,
  extendRun,
  type Fault,
  finishRun,
  putOff,
  releaseRun,
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

/** A scheduled task and its implementation. */
export interface Work {
  definition: TaskDefinition;
  task: ScheduledTask;
}

export interface Outcome {
  /** `put_off`: it failed for a transient reason, and any worker may make the next attempt. */
  state: "Done" | "Failed" | "put_off" | "lost" | "given_back";
  result?: Ending["result"];
  error?: string;
}

const retryMilliseconds = 500;
const patienceMilliseconds = 5000;
/** The backoff starts at one second and doubles with each attempt. */
const longestBackoffSeconds = 60;

/**
 * Runs a claimed task and records how it ended. A task that throws or exceeds its timeout has failed. When `giveUp`
 * aborts, the run is released for another worker. After a transient failure the run is put off while its slot is
 * worth running; a run started by hand fails instead, since somebody waits for the outcome.
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
  const calls: Calls = new Map();
  const cut = Promise.withResolvers<"timeout" | "lost" | "given_back">();
  const end = (why: "timeout" | "lost" | "given_back") => {
    cut.resolve(why);
    stop.abort();
  };
  const timer = setTimeout(() => end("timeout"), definition.timeoutSeconds * 1000);
  const abandon = () => end("given_back");
  giveUp.addEventListener("abort", abandon, { once: true });
  if (giveUp.aborted) abandon();
  let gone = false;
  const leased = keepLease(deps, claim, recorded.signal).then((lost) => {
    gone = lost;
    if (lost) end("lost");
  });
  const record = async (how: () => Promise<boolean>): Promise<boolean> => {
    // Retry until the end is recorded or another worker has the run.
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
    const context = contextOf(deps, definition, claim, stop.signal, { faults, postponed, calls });
    const ended = await Promise.race([attempt(task, context), cut.promise]);
    if (ended === "given_back") {
      await inTime(
        patienceMilliseconds,
        releaseRun(schedule(), claim, { reason: "Its worker was stopped" }),
      ).catch((err: unknown) => log.warn({ err, ...about }, "cannot give a run back; its lease will expire"));
      log.info(about, "run released");
      return { state: "given_back" };
    }
    const reason = typeof ended === "object" ? reasonToRetry(ended, postponed) : undefined;
    const seconds = Math.min(2 ** (claim.retries ?? 0), longestBackoffSeconds);
    if (reason !== undefined && isWorthRetrying(deps, definition, claim, seconds)) {
      // Stop what is left of this attempt, so that it does not overlap with the next one.
      stop.abort();
      const isPutOff = await record(() => putOff(schedule(), claim, { seconds, reason, faults }));
      log.warn({ ...about, reason, seconds }, isPutOff ? "run put off" : "run lost to another worker");
      return { state: isPutOff ? "put_off" : "lost" };
    }
    const ending =
      ended === "lost"
        ? undefined
        : endingOf(ended, definition, { faults: [...faults, ...postponed], calls });
    if (!ending || !(await record(() => finishRun(schedule(), claim, ending)))) {
      log.warn(about, "run lost to another worker");
      return { state: "lost" };
    }
    const { error } = ending;
    if (typeof ended === "object" && "thrown" in ended)
      log.error({ err: withoutQuery(ended.thrown), ...about }, "run failed");
    else if (error) log.error({ ...about, error }, "run failed");
    else log.info({ ...about, ...ending.result }, "run done");
    return { state: error === undefined ? "Done" : "Failed", result: ending.result, error };
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
  { faults, postponed, calls }: Record<"faults" | "postponed", Fault[]> & { calls: Calls },
): TaskContext {
  return {
    db: db(),
    clock: time,
    config,
    log,
    plugins,
    signal,
    slot: claim.slot,
    transaction: async (work) => {
      const assertOurs = () => {
        if (signal.aborted) throw runLost();
      };
      assertOurs();
      return whileHeld({ ...schedule(), db: db() }, claim, timeoutSeconds, (tx) => {
        // While this waited for a connection, the run may have ended and its slot may have been claimed again by this
        // worker.
        assertOurs();
        return work(tx);
      });
    },
    fault: (item, reason) => void faults.push({ item, reason }),
    postpone: (item, reason) => void postponed.push({ item, reason }),
    called: (plugin, succeeded) => {
      const { failed, hasSucceeded } = calls.get(plugin) ?? { failed: 0, hasSucceeded: false };
      calls.set(plugin, { failed: failed + (succeeded ? 0 : 1), hasSucceeded: hasSucceeded || succeeded });
    },
  };
}

/** The calls of each plugin in a run. */
type Calls = Map<string, { failed: number; hasSucceeded: boolean }>;

/** Never rejects, because the caller may have stopped waiting. */
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
  { faults, calls }: { faults: readonly Fault[]; calls: Calls },
): Ending {
  if (ended === "timeout") return { error: `It took longer than ${timeoutSeconds} s`, faults };
  if ("thrown" in ended) return { error: reasonOf(ended.thrown), faults };
  const { done, skipped, failed } = ended.result;
  const failing = [...calls]
    .filter(([, { hasSucceeded }]) => !hasSucceeded)
    .map(([slug, one]) => [slug, one.failed]);
  const result = {
    ...{ done, skipped, failed },
    ...(failing.length > 0 && { failing_plugins: Object.fromEntries(failing) }),
  };
  return { result, faults, ...(failed > 0 && done + skipped === 0 && { error: allFailed(failed, faults) }) };
}

function allFailed(count: number, [first]: readonly Fault[]): string {
  const all = count === 1 ? "Its only item failed" : `All ${count} items failed`;
  return first ? `${all}: ${first.item}: ${first.reason}` : all;
}

/** Returns why another attempt may succeed; undefined when it would fail the same way. */
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

/**
 * Renews the lease three times per lease period.
 * @returns whether the run was lost; false when `signal` aborted
 */
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
      if (!(await inTime(lease / 3, extendRun(schedule(), claim)))) return !signal.aborted;
      until = sent + lease;
      wait = lease / 3;
    } catch {
      // The database is unavailable. The lease remains valid for a while.
      if (performance.now() > until) return true;
      wait = lease / 30;
    }
  }
  return false;
}

/** Why a run failed, safe to store: third-party messages are left out. The log has the details. */
function reasonOf(thrown: unknown): string {
  const cause = withoutQuery(thrown);
  const known = operatorsError(cause);
  if (known instanceof SvcError) return known.detail;
  const code = errorCode(cause);
  if (transience(cause) === "outage") return `The connection to PostgreSQL failed (${code})`;
  if (transience(cause)) return `Another transaction was in the way (${code})`;
  const kind = cause instanceof Error ? cause.name : typeof cause;
  return `Unexpected error (${code === undefined ? kind : `${kind}, ${code}`}); see the worker's log`;
}
