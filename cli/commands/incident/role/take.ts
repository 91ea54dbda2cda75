import { defineCommand } from "../../../command.ts";
import { clientArgs, incidentArg, roleWordArg } from "../../../incident/args.ts";
import { roleCommand } from "../../../incident/participants.ts";

export default defineCommand({
  summary: "Take a role in an incident: commander, unless you say which",
  args: { ...roleWordArg, ...incidentArg, ...clientArgs },
  examples: [
    "svc incident role take",
    "svc incident role take scribe",
    "svc incident role take INC-44 commander",
  ],
  notes: ["Taking command takes it from the current commander. If you do not take part yet, you join."],
  run: (options, io) => roleCommand("take", options, io),
});
