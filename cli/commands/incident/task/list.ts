import { defineCommand } from "../../../command.ts";
import { clientArgs, idArg } from "../../../incident/args.ts";
import { taskListCommand } from "../../../incident/task.ts";

export default defineCommand({
  summary: "List the open tasks of an incident",
  args: {
    ...idArg,
    all: { type: "boolean", short: "a", description: "Include tasks that are done or cancelled" },
    mine: { type: "boolean", description: "Only tasks that you own or are assigned to" },
    ...clientArgs,
  },
  examples: ["svc incident task list", "svc incident task list INC-44 --all"],
  run: (options, io) => taskListCommand(options, io),
});
