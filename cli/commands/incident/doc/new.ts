import { defineCommand } from "../../../command.ts";
import { clientArgs, incidentArg, textArgs, wordsArg } from "../../../incident/args.ts";
import { docNewCommand } from "../../../incident/doc.ts";

export default defineCommand({
  summary: "Add a document to an incident",
  args: {
    ...wordsArg("NAME", "Name of the document. A last - reads its text from stdin"),
    ...incidentArg,
    type: {
      type: "string",
      default: "reference",
      metavar: "TYPE",
      description: "Purpose: incident, review, reference",
    },
    link: { type: "string", metavar: "URL", description: "Address of a text that is stored elsewhere" },
    ...textArgs("the text"),
    ...clientArgs,
  },
  examples: [
    'svc incident doc new "Timeline of the vendor" -F vendor.md',
    "journalctl -n 50 | svc incident doc new Journal -",
    "svc incident doc new Dashboard --link https://grafana.example.com/d/1",
  ],
  notes: ["Prints the number of the document."],
  run: (options, io) => docNewCommand(options, io),
});
