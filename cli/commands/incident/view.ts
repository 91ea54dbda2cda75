import { clientArgs, idArg } from "../../client/incident_args.ts";
import { defineCommand } from "../../command.ts";

export default defineCommand({
  summary: "Show an incident",
  args: {
    ...idArg,
    timeline: { type: "boolean", description: "The whole timeline, not only its last ten events" },
    ...clientArgs,
  },
  examples: ["svc incident view INC-44", "svc incident view --timeline", "svc incident view 44 --json"],
  async run({ id, timeline, server, json }, io) {
    const { viewCommand } = await import("../../client/incident_view.ts");
    await viewCommand({ id, timeline, server, json }, io);
  },
});
