import { clientArgs, docArg, incidentArg } from "../../../client/incident_args.ts";
import { defineCommand } from "../../../command.ts";

export default defineCommand({
  summary: "Print a document: its text, or its link",
  args: { ...docArg, ...incidentArg, ...clientArgs },
  examples: ["svc incident doc open 12", "svc incident doc open Notes | less"],
  async run(options, io) {
    const { docOpenCommand } = await import("../../../client/incident_doc.ts");
    await docOpenCommand(options, io);
  },
});
