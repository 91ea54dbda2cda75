import { clientArgs, idArg, roleArg } from "../../client/incident_args.ts";
import { defineCommand } from "../../command.ts";

export default defineCommand({
  summary: "Take part in an incident",
  args: { ...idArg, ...roleArg, ...clientArgs },
  examples: ["svc incident join INC-44", "svc incident join INC-44 --role scribe"],
  async run(options, io) {
    const { joinCommand } = await import("../../client/incident_participants.ts");
    await joinCommand(options, io);
  },
});
