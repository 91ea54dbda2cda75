import { defineCommand } from "../../command.ts";
import { clientArgs } from "../../incident/args.ts";
import { statusCommand } from "../../incident/status.ts";

export default defineCommand({
  summary: "Show what you command, your tasks, overdue reports and access",
  args: clientArgs,
  examples: ["svc incident status", "svc incident status --json"],
  run: (options, io) => statusCommand(options, io),
});
