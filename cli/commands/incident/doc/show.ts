import { defineCommand } from "../../../command.ts";
import { clientArgs, docArg, incidentArg, versionArg } from "../../../incident/args.ts";
import { docShowCommand } from "../../../incident/doc.ts";

export default defineCommand({
  summary: "Print a document: its text, or its link",
  args: {
    ...docArg,
    ...incidentArg,
    ...versionArg("Print an earlier text: a number of svc incident doc history"),
    ...clientArgs,
  },
  examples: [
    "svc incident doc show 12",
    "svc incident doc show Notes --version 3",
    "svc incident doc show Notes --version 3 | svc incident doc edit Notes -",
  ],
  notes: ["The last example restores an earlier text."],
  run: (options, io) => docShowCommand(options, io),
});
