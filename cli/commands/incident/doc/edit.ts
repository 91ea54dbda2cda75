import { defineCommand } from "../../../command.ts";
import { clientArgs, docArg, idDashArgs, incidentArg } from "../../../incident/args.ts";
import { docEditCommand } from "../../../incident/doc.ts";

export default defineCommand({
  summary: "Edit the text of a document",
  args: {
    ...docArg,
    dash: idDashArgs.dash,
    ...incidentArg,
    file: {
      type: "string",
      short: "F",
      metavar: "FILE",
      description: "Replace the text with that of FILE, or - for stdin",
    },
    ...clientArgs,
  },
  examples: ["svc incident doc edit 12", "svc incident doc edit Notes -F notes.md"],
  notes: [
    "The text opens in your editor (VISUAL, or else EDITOR). If somebody else has changed it in the meantime, nothing is saved, svc shows where both versions differ, and keeps yours in a file.",
  ],
  run: (options, io) => docEditCommand(options, io),
});
