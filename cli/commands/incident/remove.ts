import { clientArgs, incidentArg, usersArg } from "../../client/incident_args.ts";
import { defineCommand } from "../../command.ts";

export default defineCommand({
  summary: "Remove people from an incident, with all their roles in it",
  args: { ...usersArg, ...incidentArg, ...clientArgs },
  examples: ["svc incident remove dana", "svc incident remove INC-44 dana"],
  async run(options, io) {
    const { peopleCommand } = await import("../../client/incident_participants.ts");
    await peopleCommand("remove", options, io);
  },
});
