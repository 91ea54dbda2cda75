import { defineCommand } from "../../../command.ts";
import { clientArgs, docArg, incidentArg, limitArg } from "../../../incident/args.ts";
import { docHistoryCommand } from "../../../incident/doc.ts";

export default defineCommand({
  summary: "List the versions of a document's text",
  args: { ...docArg, ...incidentArg, ...limitArg("versions"), ...clientArgs },
  examples: ["svc incident doc history 12", "svc incident doc history Notes -L 100"],
  notes: [
    "The newest version comes first. `svc incident doc show DOCUMENT --version VERSION` prints the text of one.",
  ],
  run: (options, io) => docHistoryCommand(options, io),
});
