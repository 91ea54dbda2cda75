import { affectedArg, clientArgs, incidentArg } from "../../../client/incident_args.ts";
import { defineCommand } from "../../../command.ts";

export default defineCommand({
  summary: "Add services and applications that an incident affects",
  args: { ...affectedArg, ...incidentArg, ...clientArgs },
  examples: ["svc incident affected add Checkout", "svc incident affected add INC-44 service:Checkout Shop"],
  notes: ["svc incident view shows what an incident affects."],
  async run(options, io) {
    const { affectedCommand } = await import("../../../client/incident_affected.ts");
    await affectedCommand("add", options, io);
  },
});
