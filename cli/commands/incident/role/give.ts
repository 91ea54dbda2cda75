import { defineCommand } from "../../../command.ts";
import { clientArgs, incidentArg, roleUserArg } from "../../../incident/args.ts";
import { roleCommand } from "../../../incident/participants.ts";

export default defineCommand({
  summary: "Give a role to somebody: commander, unless you say which",
  args: { ...roleUserArg, ...incidentArg, ...clientArgs },
  examples: ["svc incident role give dana", "svc incident role give dana scribe"],
  notes: [
    "Giving somebody command takes it from the current commander. People who do not take part yet join.",
  ],
  run: (options, io) => roleCommand("give", options, io),
});
