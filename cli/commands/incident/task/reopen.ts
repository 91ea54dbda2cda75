import { clientArgs, tasksArg } from "../../../client/incident_args.ts";
import { defineCommand } from "../../../command.ts";

export default defineCommand({
  summary: "Reopen tasks",
  args: { ...tasksArg, ...clientArgs },
  examples: ["svc incident task reopen 12"],
  async run(options, io) {
    const { taskStatusCommand } = await import("../../../client/incident_task.ts");
    await taskStatusCommand("Open", options, io);
  },
});
