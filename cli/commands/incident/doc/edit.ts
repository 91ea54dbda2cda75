import { defineCommand } from "../../../command.ts";
import { clientArgs, docArg, idDashArgs, incidentArg, versionArg } from "../../../incident/args.ts";
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
    ...versionArg("The version that your text is based on (default: the current one)"),
    ...clientArgs,
  },
  examples: [
    "svc incident doc edit 12",
    "svc incident doc edit Notes -F notes.md",
    "svc incident doc edit Notes --version 3 -F notes.md",
  ],
  notes: [
    "The text opens in your editor (VISUAL, or else EDITOR). If somebody else has changed it in the meantime, both changes are merged. Where both of you changed the same lines, your editor opens with both versions. Without a terminal, nothing is saved, and svc keeps both versions in a file.",
  ],
  run: (options, io) => docEditCommand(options, io),
});
