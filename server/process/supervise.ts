import { createLifecycleLog } from "../../platform/log.ts";
import { onHangUp, stopSignal } from "../../platform/stop_signal.ts";
import { type MetricsPlace, serveMetrics } from "../../platform/telemetry/endpoint.ts";
import { Supervisor, type SupervisorOptions } from "./supervisor.ts";
import { isSource, watchFiles } from "./watch.ts";

export interface SuperviseOptions extends Omit<SupervisorOptions, "log"> {
  /** Where the workers listen, as users write it. */
  address: string;
  /** How long workers keep serving after the signal while reporting that they will stop. */
  drainSeconds: number;
  /** Where to serve the metrics of all workers, if configured. */
  metrics?: MetricsPlace;
  /** Files and folders whose changes restart the workers. */
  reload: readonly string[];
}

/**
 * Serves with workers until SIGINT or SIGTERM. SIGHUP replaces them without refusing a connection; SIGUSR2 toggles
 * their log level `debug`.
 * @throws SvcError when they cannot be started
 */
export async function supervise({
  address,
  drainSeconds,
  metrics,
  reload,
  ...options
}: SuperviseOptions): Promise<void> {
  const log = createLifecycleLog();
  const supervisor = new Supervisor({ ...options, log });
  const endpoint = metrics && serveMetrics(metrics, () => supervisor.metrics());
  process.on("SIGUSR2", () => supervisor.toggleVerbosity());
  const hungUp = Promise.withResolvers<void>();
  const stop = Promise.race([stopSignal(), hungUp.promise]);
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
  const again = onceMore(
    () => begun.then(() => supervisor.roll()),
    () => log.error("cannot replace the workers; the old ones keep running"),
  );
  onHangUp(again, hungUp.resolve);
  const up = await Promise.race([supervisor.start().then(() => true), stop.then(() => false)]);
  if (up) begin();
  const changed = () => {
    log.info("a file has changed: restarting");
    again();
  };
  using _watch = reload.length === 0 ? undefined : watchFiles(reload, changed, isSource);
  if (up) log.info(`listening on ${address} with ${options.count} worker${options.count === 1 ? "" : "s"}`);
  if (endpoint) log.info(`metrics at ${endpoint.address}`);
  await stop;
  if (up && drainSeconds > 0) {
    supervisor.leave();
    await Bun.sleep(drainSeconds * 1000);
  }
  await supervisor.stop();
  await endpoint?.stop();
}

/**
 * Runs `work`, and once more if it was requested meanwhile: not once for each of a hundred files that a checkout
 * changes. An error is passed to `failed`, and `work` may be requested again.
 */
export function onceMore(work: () => Promise<unknown>, failed: (cause: unknown) => void): () => void {
  let state: "idle" | "running" | "again" = "idle";
  const run = async () => {
    do {
      state = "running";
      await work().catch(failed);
    } while (state === ("again" as string));
    state = "idle";
  };
  return () => {
    if (state === "idle") void run();
    else state = "again";
  };
}
