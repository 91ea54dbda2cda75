import { defineCommand } from "../../command.ts";
import { clientArgs, incidentArg, usersArg } from "../../incident/args.ts";
import { peopleCommand } from "../../incident/participants.ts";

export default defineCommand({
  summary: "Remove people from an incident, with all their roles in it",
  args: { ...usersArg, ...incidentArg, ...clientArgs },
  examples: ["svc incident remove dana", "svc incident remove INC-44 dana"],
  run: (options, io) => peopleCommand("remove", options, io),
});
