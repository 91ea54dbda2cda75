import { defineCommand } from "../../command.ts";
import { UsageError } from "../../errors.ts";
import { taskArgument, taskNamed } from "../../scheduler.ts";
import { parsePort } from "../../up/ports.ts";

export default defineCommand({
  args: {
    task: { ...taskArgument, required: false, description: "The only task to run (otherwise all)" },
    eager: { type: "boolean", description: "Run that task now, and end with its outcome" },
    keep: { type: "boolean", description: "After that, go on with the schedule" },
    logLevel: {
      type: "enum",
      metavar: "LEVEL",
      choices: ["trace", "debug", "info", "warn", "error", "fatal"],
      description: "The least severe log line that is written (otherwise SVC_LOG_LEVEL)",
    },
    metricsHost: {
      type: "string",
      metavar: "TEXT",
      description:
        "Address to serve /metrics on, with METRIC_PROVIDERS=prometheus (otherwise SVC_METRICS_HOST)",
    },
    metricsPort: {
      type: "custom",
      metavar: "INTEGER",
      description: "Port for that; 0: any free one (otherwise SVC_SCHEDULER_METRICS_PORT)",
      parse: parsePort,
    },
    healthHost: {
      type: "string",
      metavar: "TEXT",
      description: "Address for --health-port (default 127.0.0.1)",
    },
    healthPort: {
      type: "custom",
      metavar: "INTEGER",
      description: "Serve /healthcheck and /live, about this worker alone, on this port; 0: any free one",
      parse: parsePort,
    },
  },
  examples: ["svc scheduler start", "svc scheduler start calculate-incident-cost --eager"],
  notes: [
    "Any number of workers may run on one database: each slot is claimed by one of them, and one that dies is taken over by another within half a minute.",
    "Ctrl-C (or SIGTERM) claims no more slots and waits up to 20 s for what is under way; what is left, another worker does. The same signal again, half a second later, ends it at once.",
    "A worker whose event loop has not turned for 20 s ends itself, with exit code 1.",
    "SIGUSR2 has it log at debug, and a second one as configured.",
  ],
  async run({ task, eager = false, keep = false, ...rest }, io) {
    const name = task === undefined ? undefined : await taskNamed(task);
    if (eager && name === undefined) throw new UsageError("--eager needs a task: svc scheduler list");
    if (keep && !eager) throw new UsageError("--keep goes with --eager");
    if (rest.healthHost !== undefined && rest.healthPort === undefined)
      throw new UsageError("--health-host goes with --health-port");
    const [{ startWorker }, { serviceEnvironment }] = await Promise.all([
      import("../../../worker/start.ts"),
      import("../../trial.ts"),
    ]);
    const { environment } = await serviceEnvironment(io);
    const report = (text: string) => void io.stdout.write(`${text}\n`);
    await startWorker({ ...rest, task: name, eager, keep, report }, environment);
  },
});
