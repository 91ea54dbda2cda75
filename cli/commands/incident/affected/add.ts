import { defineCommand } from "../../../command.ts";
import { affectedCommand } from "../../../incident/affected.ts";
import { affectedArg, clientArgs, incidentArg } from "../../../incident/args.ts";

export default defineCommand({
  summary: "Add services and applications that an incident affects",
  args: { ...affectedArg, ...incidentArg, ...clientArgs },
  examples: ["svc incident affected add Checkout", "svc incident affected add INC-44 service:Checkout Shop"],
  notes: ["svc incident view shows what an incident affects."],
  run: (options, io) => affectedCommand("add", options, io),
});
