import { defineCommand } from "../../../command.ts";
import { clientArgs, docArg, incidentArg } from "../../../incident/args.ts";

export default defineCommand({
  summary: "Print a document: its text, or its link",
  args: { ...docArg, ...incidentArg, ...clientArgs },
  examples: ["svc incident doc open 12", "svc incident doc open Notes | less"],
  async run(options, io) {
    const { docOpenCommand } = await import("../../../incident/doc.ts");
    await docOpenCommand(options, io);
  },
});
