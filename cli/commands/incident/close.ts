import { defineCommand } from "../../command.ts";
import { clientArgs, idArg, textArgs } from "../../incident/args.ts";
import { closeCommand } from "../../incident/state.ts";

export default defineCommand({
  summary: "Close an incident",
  args: {
    ...idArg,
    resolution: { type: "string", short: "r", metavar: "TEXT", description: "How it was resolved" },
    ...textArgs("the resolution"),
    ...clientArgs,
  },
  examples: ['svc incident close -r "Rolled back to 1.4.2"', "svc incident close INC-44 -e"],
  notes: [
    "If somebody else changed the incident meanwhile, their change stays; if they changed the same field, nothing is saved and both versions are shown.",
  ],
  run: (options, io) => closeCommand(options, io),
});
