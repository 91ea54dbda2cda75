import { defineCommand } from "../../command.ts";
import { clientArgs, idArg } from "../../incident/args.ts";
import { updateCommand } from "../../incident/update.ts";

export default defineCommand({
  summary: "Write a status report",
  args: {
    ...idArg,
    editor: {
      type: "boolean",
      short: "e",
      description: "Write it in your editor (the default on a terminal)",
    },
    conditions: { type: "string", short: "c", metavar: "TEXT", description: "How it stands" },
    actions: { type: "string", short: "a", metavar: "TEXT", description: "What is being done" },
    needs: { type: "string", short: "n", metavar: "TEXT", description: "What is missing" },
    file: {
      type: "string",
      short: "F",
      metavar: "FILE",
      description: "From FILE, or - for stdin, with the headings # Conditions, # Actions and # Needs",
    },
    ...clientArgs,
  },
  examples: [
    "svc incident update -e",
    'svc incident update INC-44 -c "Half of the orders fail" -a "Rolling back"',
  ],
  notes: [
    "The editor (VISUAL, or else EDITOR) opens with a heading for each part, and the last report in a comment. If the report cannot be sent, svc keeps it and prints how to send it again.",
  ],
  run: (options, io) => updateCommand(options, io),
});
