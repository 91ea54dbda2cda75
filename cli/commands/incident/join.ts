import { defineCommand } from "../../command.ts";
import { clientArgs, idArg, roleArg } from "../../incident/args.ts";

export default defineCommand({
  summary: "Take part in an incident",
  args: { ...idArg, ...roleArg, ...clientArgs },
  examples: ["svc incident join INC-44", "svc incident join INC-44 --role scribe"],
  async run(options, io) {
    const { joinCommand } = await import("../../incident/participants.ts");
    await joinCommand(options, io);
  },
});
