import { Unavailable } from "../../../platform/errors.ts";
import { defineCommand } from "../../command.ts";
import { instantText, onSchedule } from "../../scheduler.ts";
import { printTable } from "../../table.ts";
import { printable, printJson } from "../../text.ts";

export default defineCommand({
  summary: "Show last runs, next slots and late tasks",
  args: {
    json: { type: "boolean", description: "Print JSON" },
    check: {
      type: "boolean",
      description:
        "Exit with 1 if no worker is running, or a task or a plugin keeps failing, or a task is late",
    },
  },
  examples: ["svc scheduler status", "svc scheduler status --check"],
  notes: [
    "Lag is how long a due slot has been waiting for a worker. Failures counts failed and missed runs in the last 24 h. Failing Since is the first failure after the last run that was Done.",
    "Below the table: plugins that failed for all of their items, and tasks of which some items failed in the last run.",
    "On a narrow terminal, Failing Since and Last Slot are left out; --json has everything.",
    "--check covers the whole schedule. To check one worker, use svc scheduler start --health-port.",
  ],
  async run({ json, check }, io) {
    const { asJson, laggards, scheduleStatus } = await import("../../../core/schedule/status.ts");
    const status = await onSchedule(io, scheduleStatus);
    const late = laggards(status);
    if (json) printJson(io, asJson(status));
    else {
      const rows = status.tasks.map(({ name, state, last, next, lagSeconds, failures, failing }) => [
        name,
        state,
        instantText(last?.slot ?? null),
        last?.state ?? "-",
        instantText(next),
        `${Math.floor(lagSeconds)} s`,
        String(failures),
        instantText(failing?.since ?? null),
      ]);
      const columns = [
        "Task Name",
        "State",
        { header: "Last Slot", leaveOut: 2 },
        "Last Run",
        "Next Slot",
        "Lag",
        "Failures",
        { header: "Failing Since", leaveOut: 1 },
      ];
      printTable(io, columns, rows);
      for (const { name, last, failedShare, failingPlugins } of status.tasks) {
        for (const { plugin, since } of failingPlugins)
          io.stderr.write(`The plugin ${printable(plugin)} fails in ${name} since ${instantText(since)}\n`);
        if (last?.state === "Done" && failedShare)
          io.stderr.write(
            `${Math.ceil(failedShare * 100)} % of the items of ${name} failed: svc scheduler explain ${name}\n`,
          );
      }
      const alive = status.workers.filter((worker) => worker.alive);
      for (const { host, pid, startedAt } of alive)
        io.stderr.write(`Worker on ${printable(host)}, pid ${pid}, since ${instantText(startedAt)}\n`);
      if (alive.length === 0) io.stderr.write("No worker is running; start one with svc scheduler start\n");
    }
    if (check && late.length > 0) throw new Unavailable(`The schedule needs attention: ${late.join("; ")}`);
  },
});
