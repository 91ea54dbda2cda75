import { defineCommand } from "../../command.ts";
import { clientArgs, idArg } from "../../incident/args.ts";
import { viewCommand } from "../../incident/view.ts";

export default defineCommand({
  summary: "Show an incident",
  args: {
    ...idArg,
    timeline: { type: "boolean", description: "The whole timeline, not only its last ten events" },
    ...clientArgs,
  },
  examples: ["svc incident view INC-44", "svc incident view --timeline", "svc incident view 44 --json"],
  run: (options, io) => viewCommand(options, io),
});
