import { defineCommand } from "../../../command.ts";
import { clientArgs, idArg } from "../../../incident/args.ts";

export default defineCommand({
  summary: "List the documents of an incident",
  args: { ...idArg, ...clientArgs },
  examples: ["svc incident doc list", "svc incident doc list INC-44 --json"],
  async run(options, io) {
    const { docListCommand } = await import("../../../incident/doc.ts");
    await docListCommand(options, io);
  },
});
