import { defineCommand } from "../../command.ts";
import { clientArgs, incidentArg, textArg, textArgs } from "../../incident/args.ts";
import { sayCommand } from "../../incident/note.ts";

export default defineCommand({
  summary: "Write to the participants, in the incident's channel",
  args: {
    ...textArg,
    ...incidentArg,
    ...textArgs("the message"),
    to: { type: "string", metavar: "USER", description: "Only to this participant" },
    ...clientArgs,
  },
  examples: [
    'svc incident say "Who can restart the load balancer?"',
    'svc incident say --to dana "Please join"',
  ],
  notes: [
    "If the message cannot be sent, svc keeps it in a file and prints how to send it again, which never sends it twice.",
  ],
  run: (options, io) => sayCommand(options, io),
});
