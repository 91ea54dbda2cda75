import { defineCommand } from "../../command.ts";
import { clientArgs, incidentArg, textArg, textArgs } from "../../incident/args.ts";
import { noteCommand } from "../../incident/note.ts";

export default defineCommand({
  summary: "Add a note to the timeline",
  args: {
    ...textArg,
    ...incidentArg,
    ...textArgs("the note"),
    at: {
      type: "string",
      metavar: "TIME",
      description: "When it happened, if not now: 10m, 14:05, 2026-11-20T14:05:00Z",
    },
    ...clientArgs,
  },
  examples: [
    'svc incident note "The disk of db-2 is full"',
    'svc incident note INC-44 "Rolled back" --at 14:05',
    "df -h | svc incident note -",
  ],
  notes: [
    "If the note cannot be sent, svc keeps it in a file and prints how to send it again, which never adds it twice.",
  ],
  run: (options, io) => noteCommand(options, io),
});
