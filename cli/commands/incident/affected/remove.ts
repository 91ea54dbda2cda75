import { defineCommand } from "../../../command.ts";
import { affectedCommand } from "../../../incident/affected.ts";
import { affectedArg, clientArgs, incidentArg } from "../../../incident/args.ts";

export default defineCommand({
  summary: "Remove services and applications that an incident no longer affects",
  args: { ...affectedArg, ...incidentArg, ...clientArgs },
  examples: ["svc incident affected remove Checkout"],
  notes: ["svc incident view shows what an incident affects."],
  run: (options, io) => affectedCommand("remove", options, io),
});
