import { defineCommand } from "../../command.ts";
import { clientArgs, incidentArg, usersArg } from "../../incident/args.ts";

export default defineCommand({
  summary: "Remove people from an incident, with all their roles in it",
  args: { ...usersArg, ...incidentArg, ...clientArgs },
  examples: ["svc incident remove dana", "svc incident remove INC-44 dana"],
  async run(options, io) {
    const { peopleCommand } = await import("../../incident/participants.ts");
    await peopleCommand("remove", options, io);
  },
});
