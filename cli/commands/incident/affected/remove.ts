import { affectedArg, clientArgs, incidentArg } from "../../../client/incident_args.ts";
import { defineCommand } from "../../../command.ts";

export default defineCommand({
  summary: "Remove services and applications that an incident does not affect",
  args: { ...affectedArg, ...incidentArg, ...clientArgs },
  examples: ["svc incident affected remove Checkout"],
  notes: ["svc incident view shows what an incident affects."],
  async run(options, io) {
    const { affectedCommand } = await import("../../../client/incident_affected.ts");
    await affectedCommand("remove", options, io);
  },
});
