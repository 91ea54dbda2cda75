import { createLifecycleLog } from "../../platform/log.ts";
import { onHangUp, stopSignal } from "../../platform/stop_signal.ts";
import { type MetricsPlace, serveMetrics } from "../../platform/telemetry/endpoint.ts";
import { Supervisor, type SupervisorOptions } from "./supervisor.ts";
import { watchFiles } from "./watch.ts";

export interface SuperviseOptions extends Omit<SupervisorOptions, "log"> {
  /** Where the workers listen, as a person types it. */
  address: string;
  /** How long they go on serving after the signal, telling so. */
  drainSeconds: number;
  /** Where the metrics of all workers are served, if anywhere. */
  metrics?: MetricsPlace;
  /** Files and folders whose changes start the workers anew. */
  reload: readonly string[];
}

/**
 * Serves by workers until SIGINT or SIGTERM; SIGHUP replaces all of them without a refused connection, SIGUSR2 has
 * them log at `debug` and back.
 * @throws SvcError when they do not come up at the start
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
  using _watch = reload.length === 0 ? undefined : watchFiles(reload, again);
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
 * Runs `work`, and once more if it was asked for meanwhile: not once for each of a hundred files that a checkout changes.
 * Work that throws is told to `failed`, and may be asked for again.
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
