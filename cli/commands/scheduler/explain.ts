import { defineCommand } from "../../command.ts";
import { instantText, onSchedule, taskArgument, taskNamed } from "../../scheduler.ts";
import { printable } from "../../text.ts";

export default defineCommand({
  summary: "Explain why a task is or is not due",
  args: { task: taskArgument },
  examples: ["svc scheduler explain incident-daily-summary"],
  notes: [
    "Shows when the task is due and why, the result of its last run, and the items that failed in the last 24 h.",
  ],
  async run({ task }, io) {
    const name = await taskNamed(task);
    const [{ explain }, { recentFaults, scheduleStatus }] = await Promise.all([
      import("../../../core/schedule/explain.ts"),
      import("../../../core/schedule/status.ts"),
    ]);
    const lines = await onSchedule(io, async (context) => {
      const { now, tasks } = await scheduleStatus(context);
      const status = tasks.find((one) => one.name === name)!;
      const faults = await recentFaults(context, status, now);
      return explain(status, { now, faults, timezone: context.config.timezone }, instantText);
    });
    for (const line of lines) io.stdout.write(`${printable(line)}\n`);
  },
});
