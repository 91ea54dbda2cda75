import { defineCommand } from "../../command.ts";
import { clientArgs, idArg, roleArg } from "../../incident/args.ts";
import { joinCommand } from "../../incident/participants.ts";

export default defineCommand({
  summary: "Take part in an incident",
  args: { ...idArg, ...roleArg, ...clientArgs },
  examples: ["svc incident join INC-44", "svc incident join INC-44 --role scribe"],
  run: (options, io) => joinCommand(options, io),
});
