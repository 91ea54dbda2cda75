import { clientArgs } from "../../client/incident_args.ts";
import { defineCommand } from "../../command.ts";

export default defineCommand({
  summary: "Show what you command, your tasks, overdue reports and access",
  args: clientArgs,
  examples: ["svc incident status", "svc incident status --json"],
  async run(options, io) {
    const { statusCommand } = await import("../../client/incident_status.ts");
    await statusCommand(options, io);
  },
});
