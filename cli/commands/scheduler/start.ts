import { defineCommand } from "../../command.ts";
import { UsageError } from "../../errors.ts";
import { taskArgument, taskNamed } from "../../scheduler.ts";
import { logLevel } from "../../start_options.ts";
import { serviceEnvironment } from "../../trial.ts";
import { parsePort } from "../../up/ports.ts";

export default defineCommand({
  summary: "Start a worker",
  args: {
    task: { ...taskArgument, required: false, description: "Run only this task (default: all)" },
    eager: { type: "boolean", description: "Run the task now, then exit" },
    keep: { type: "boolean", description: "With --eager, continue with the schedule afterwards" },
    logLevel,
    healthHost: {
      type: "string",
      metavar: "TEXT",
      description: "Address for --health-port (default: 127.0.0.1)",
    },
    healthPort: {
      type: "custom",
      metavar: "INTEGER",
      description: "Serve /healthcheck and /live of this worker on this port; 0 for any free port",
      parse: parsePort,
    },
  },
  examples: ["svc scheduler start", "svc scheduler start calculate-incident-cost --eager"],
  notes: [
    "Any number of workers can share a database: each slot is claimed by one of them. If a worker dies, another takes over within half a minute.",
    "Ctrl-C (or SIGTERM) stops claiming slots and waits up to 20 s for running tasks; another worker does the rest. A second signal, at least half a second later, exits at once.",
    "A worker whose event loop is blocked for 20 s exits with 1.",
    "SIGUSR2 switches to the log level debug, and back.",
  ],
  async run({ task, eager = false, keep = false, ...rest }, io) {
    const name = task === undefined ? undefined : await taskNamed(task);
    if (eager && name === undefined) throw new UsageError("--eager needs a task: svc scheduler list");
    if (keep && !eager) throw new UsageError("--keep requires --eager");
    if (rest.healthHost !== undefined && rest.healthPort === undefined)
      throw new UsageError("--health-host requires --health-port");
    const { startWorker } = await import("../../../worker/start.ts");
    const { environment } = await serviceEnvironment(io);
    const report = (text: string) => void io.stdout.write(`${text}\n`);
    await startWorker({ ...rest, task: name, eager, keep, report }, environment);
  },
});
