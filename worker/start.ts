import type { TaskName } from "../core/schedule/tasks.ts";
import { SvcError } from "../platform/errors.ts";
import { createLifecycleLog, Verbosity } from "../platform/log.ts";
import { stopSignal } from "../platform/stop_signal.ts";
import { type MetricsEndpoint, metricsPlace, serveMetrics } from "../platform/telemetry/endpoint.ts";
import type { Environment } from "../platform/variable.ts";
import { startWatchdog } from "../platform/watchdog.ts";
import { sendDeliveries } from "./deliveries.ts";
import { serveHealth, WorkerHealth } from "./health.ts";
import { revokeLeases } from "./leases.ts";
import { type OpenWorker, openWorker } from "./open.ts";
import { Outage } from "./outage.ts";
import type { Outcome } from "./run.ts";
import { worksOf } from "./tasks/index.ts";
import { work, workNow } from "./worker.ts";

/**
 * When a stop ends statements that still wait, for example for a table that somebody has locked: after work has had its
 * time to finish, and what is left has been released.
 */
const patienceMilliseconds = 25_000;

export interface StartOptions {
  /** The only task this worker runs; all tasks if undefined. */
  task?: TaskName;
  /** Run that task now. */
  eager: boolean;
  /** Continue with the schedule afterwards. */
  keep: boolean;
  logLevel?: string;
  healthHost?: string;
  healthPort?: number;
  /** Prints how the requested run ended. */
  report: (text: string) => void;
}

/**
 * Works on the schedule until SIGINT or SIGTERM.
 * @throws SvcError when a requested run failed
 */
export async function startWorker(options: StartOptions, environment: Environment): Promise<void> {
  const { task, eager, keep, logLevel, healthHost: host = "127.0.0.1", healthPort: port, report } = options;
  const stop = new AbortController();
  const end = () => stop.abort();
  void stopSignal().then(end);
  let verbosity: Verbosity | undefined;
  const toggle = () => verbosity?.toggle();
  process.on("SIGUSR2", toggle);
  const works = worksOf(task);
  const settings = logLevel ? { ...environment, SVC_LOG_LEVEL: logLevel } : environment;
  const health = new WorkerHealth();
  // Before the database answers: a worker that waits for it is alive.
  const probed = port === undefined ? undefined : serveHealth({ host, port }, health);
  const endWatchdog = startWatchdog();
  let deps: OpenWorker | undefined;
  let endpoint: MetricsEndpoint | undefined;
  let timer: NodeJS.Timeout | undefined;
  const endStatements = () => {
    timer = setTimeout(() => deps?.reopen(), patienceMilliseconds);
  };
  stop.signal.addEventListener("abort", endStatements, { once: true });
  try {
    deps = await openWorker({ environment: settings, patient: !eager, logUnhandled: true }, stop.signal);
    if (!deps) return;
    verbosity = new Verbosity(deps.log);
    // A process that only runs one task may share the host with a worker that has the port.
    if (!eager || keep) endpoint = serveOwnMetrics(deps);
    if (eager) {
      for (const one of works)
        reportOutcome(one.definition.name, await workNow(deps, one, stop.signal), report);
      if (!keep) return;
    }
    const what = works.length === 1 ? works[0]!.definition.name : `${works.length} tasks`;
    const log = createLifecycleLog();
    log.info(`worker for ${what}`);
    if (endpoint) log.info(`metrics at ${endpoint.address}`);
    if (probed) log.info(`health at ${probed.address}`);
    // Only now: a run by hand has no heartbeat.
    const shared = { ...deps, health, outage: new Outage(deps.log) };
    const all = [work(shared, works, stop.signal)];
    const onceTimed = async (loop: typeof sendDeliveries | typeof revokeLeases) => {
      await shared.time.known(stop.signal);
      await loop(shared, stop.signal);
    };
    // A worker for one task does nothing else.
    if (task === undefined) all.push(onceTimed(sendDeliveries), onceTimed(revokeLeases));
    // If one of them fails, the others end, too.
    await Promise.all(all.map((one) => one.finally(end)));
  } finally {
    clearTimeout(timer);
    stop.signal.removeEventListener("abort", endStatements);
    await Promise.all([endpoint?.stop(), deps?.close(), probed?.stop(), endWatchdog()]);
    process.removeListener("SIGUSR2", toggle);
  }
}

/** @throws SvcError when the port is taken */
function serveOwnMetrics({ config, telemetry }: OpenWorker): MetricsEndpoint | undefined {
  const place = metricsPlace(config, "schedulerMetricsPort");
  return place && telemetry?.scrape && serveMetrics(place, telemetry.scrape);
}

/** @throws SvcError with the reason when the run failed */
function reportOutcome(
  name: string,
  { state, result, error }: Outcome,
  report: (text: string) => void,
): void {
  if (result) report(`${name}: ${result.done} done, ${result.skipped} skipped, ${result.failed} failed`);
  if (state === "Done") {
    const failing = Object.entries(result?.failing_plugins ?? {});
    if (failing.length === 0) return;
    const each = failing.map(
      ([plugin, count]) => `the plugin ${plugin} failed for all of its ${count} items`,
    );
    throw new SvcError("internal", `${name}: ${each.join("; ")}: svc scheduler explain ${name}`);
  }
  const reason = state === "Failed" ? error : state === "lost" ? "lost to another worker" : "stopped";
  throw new SvcError("internal", `${name}: ${reason}`);
}
