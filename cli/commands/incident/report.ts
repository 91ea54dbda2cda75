import { defineCommand } from "../../command.ts";
import { clientArgs, idDashArgs, textArgs, textOption } from "../../incident/args.ts";
import { reportCommand } from "../../incident/report.ts";

export default defineCommand({
  summary: "Report an incident",
  args: {
    title: {
      type: "positional",
      required: false,
      metavar: "TITLE",
      description: "What is wrong, in one line",
    },
    dash: { ...idDashArgs.dash, description: "Read the description from stdin" },
    description: textOption("d", "Description"),
    ...textArgs("the description"),
    type: { type: "string", short: "t", metavar: "TYPE", description: "Type (default: the first one)" },
    priority: { type: "string", short: "p", metavar: "PRIORITY", description: "Priority" },
    restricted: { type: "boolean", description: "Make it visible only to its participants" },
    commander: { type: "string", metavar: "USER", description: "Commander of the incident" },
    use: { type: "boolean", description: "Make it the default incident of the other commands" },
    quiet: { type: "boolean", short: "q", description: "Print only its name" },
    recover: { type: "string", metavar: "FILE", description: "Send the report of a failed attempt again" },
    ...clientArgs,
  },
  examples: [
    'svc incident report "Checkout is down" --priority High --use',
    'svc incident report "Disk full" -p Low -t "Data Loss" -F notes.md',
    'journalctl -n 50 | svc incident report "Worker fails" - -p High',
  ],
  notes: [
    "On a terminal, svc asks for what is missing; with TITLE and --priority, it asks for nothing. If the report cannot be sent, svc keeps it in a file and prints how to send it again, which never reports it twice.",
  ],
  run: (options, io) => reportCommand(options, io),
});
