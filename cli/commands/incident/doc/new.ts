import { defineCommand } from "../../../command.ts";
import { clientArgs, incidentArg, textArgs, wordsArg } from "../../../incident/args.ts";
import { docNewCommand } from "../../../incident/doc.ts";

export default defineCommand({
  summary: "Add a document to an incident",
  args: {
    ...wordsArg("NAME", "Its name"),
    ...incidentArg,
    type: {
      type: "string",
      default: "reference",
      metavar: "TYPE",
      description: "What it is for: incident, review, reference",
    },
    link: { type: "string", metavar: "URL", description: "Where it is, if its text is elsewhere" },
    ...textArgs("the text"),
    ...clientArgs,
  },
  examples: [
    'svc incident doc new "Timeline of the vendor" -F vendor.md',
    "svc incident doc new Dashboard --link https://grafana.example.com/d/1",
  ],
  notes: ["It prints the number of the document."],
  run: (options, io) => docNewCommand(options, io),
});
