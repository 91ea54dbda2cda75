import { defineCommand } from "../../command.ts";
import { clientArgs } from "../../incident/args.ts";

export default defineCommand({
  summary: "Show what you command, your tasks, overdue reports and access",
  args: clientArgs,
  examples: ["svc incident status", "svc incident status --json"],
  async run(options, io) {
    const { statusCommand } = await import("../../incident/status.ts");
    await statusCommand(options, io);
  },
});
