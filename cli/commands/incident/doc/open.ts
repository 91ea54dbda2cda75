import { defineCommand } from "../../../command.ts";
import { clientArgs, docArg, incidentArg } from "../../../incident/args.ts";
import { docOpenCommand } from "../../../incident/doc.ts";

export default defineCommand({
  summary: "Print a document: its text, or its link",
  args: { ...docArg, ...incidentArg, ...clientArgs },
  examples: ["svc incident doc open 12", "svc incident doc open Notes | less"],
  run: (options, io) => docOpenCommand(options, io),
});
