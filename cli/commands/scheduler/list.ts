import { defineCommand } from "../../command.ts";
import { printTable } from "../../table.ts";
import { printJson } from "../../text.ts";

export default defineCommand({
  summary: "List the scheduled tasks",
  args: { json: { type: "boolean", description: "Print JSON" } },
  examples: ["svc scheduler list"],
  notes: ["The tasks, their periods and times are fixed; SVC_TIMEZONE sets the time zone of the times."],
  async run({ json }, io) {
    const { atTimeText, periodText, scheduledTasks } = await import("../../../core/schedule/tasks.ts");
    const list = scheduledTasks.map((task) => ({
      name: task.name,
      period: periodText(task.timing),
      at_time: atTimeText(task) ?? null,
    }));
    if (json) return printJson(io, list);
    const rows = list.map(({ name, period, at_time }) => [name, period, at_time ?? ""]);
    const columns = ["Task Name", { header: "Period", leaveOut: 2 }, { header: "At Time", leaveOut: 1 }];
    printTable(io, columns, rows);
  },
});
