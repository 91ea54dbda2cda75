import { defineCommand } from "../../../command.ts";
import { clientArgs, incidentArg, roleWordArg } from "../../../incident/args.ts";
import { roleCommand } from "../../../incident/participants.ts";

export default defineCommand({
  summary: "Give up a role: commander, unless you say which",
  args: { ...roleWordArg, ...incidentArg, ...clientArgs },
  examples: ["svc incident role drop scribe"],
  notes: ["An incident keeps its commander until somebody else takes over: svc incident role give USER."],
  run: (options, io) => roleCommand("drop", options, io),
});
