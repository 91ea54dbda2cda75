import { defineCommand } from "../../command.ts";
import { clientArgs, incidentArg, roleArg, usersArg } from "../../incident/args.ts";
import { peopleCommand } from "../../incident/participants.ts";

export default defineCommand({
  summary: "Add people to an incident",
  args: { ...usersArg, ...incidentArg, ...roleArg, ...clientArgs },
  examples: ["svc incident add dana", "svc incident add INC-44 dana erin@example.com --role observer"],
  notes: ["People whom svc does not know yet are added by their address."],
  run: (options, io) => peopleCommand("add", options, io),
});
