import { SvcError } from "../../core/errors.ts";
import { type MetricsPlace, serveMetrics } from "../../core/telemetry/endpoint.ts";
import { Supervisor, type SupervisorOptions } from "./supervisor.ts";
import { watchFiles } from "./watch.ts";

export interface SuperviseOptions extends Omit<SupervisorOptions, "say"> {
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
  const say = (text: string) => void process.stderr.write(`svc: ${text}\n`);
  const supervisor = new Supervisor({ ...options, say });
  const endpoint = metrics && serveMetrics(metrics, () => supervisor.metrics());
  process.on("SIGUSR2", () => supervisor.toggleVerbosity());
  const stop = Promise.withResolvers<void>();
  process.once("SIGINT", () => stop.resolve());
  process.once("SIGTERM", () => stop.resolve());
  const stopped = stop.promise.then(() => "stopped" as const);
  const up = await Promise.race([supervisor.start(), stopped]);
  if (up === false) {
    throw new SvcError("configuration", "The first worker did not come up: its own words are above");
  }
  const again = onceMore(() => supervisor.roll());
  process.on("SIGHUP", again);
  using _watch = reload.length === 0 ? undefined : watchFiles(reload, again);
  if (up === true)
    say(`listening on ${address} with ${options.count} worker${options.count === 1 ? "" : "s"}`);
  if (endpoint) say(`metrics at ${endpoint.address}`);
  await stop.promise;
  if (up === true && drainSeconds > 0) {
    supervisor.leave();
    await Bun.sleep(drainSeconds * 1000);
  }
  await supervisor.stop();
  await endpoint?.stop();
}

/** Runs `work`, and once more if it was asked for meanwhile: not once for each of a hundred files that a checkout changes. */
export function onceMore(work: () => Promise<unknown>): () => void {
  let state: "idle" | "running" | "again" = "idle";
  const run = async () => {
    do {
      state = "running";
      await work();
    } while (state === ("again" as string));
    state = "idle";
  };
  return () => {
    if (state === "idle") void run();
    else state = "again";
  };
}
