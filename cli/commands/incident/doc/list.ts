import { defineCommand } from "../../../command.ts";
import { clientArgs, idArg } from "../../../incident/args.ts";
import { docListCommand } from "../../../incident/doc.ts";

export default defineCommand({
  summary: "List the documents of an incident",
  args: { ...idArg, ...clientArgs },
  examples: ["svc incident doc list", "svc incident doc list INC-44 --json"],
  run: (options, io) => docListCommand(options, io),
});
