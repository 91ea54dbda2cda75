import { clientArgs, incidentArg, roleWordArg } from "../../../client/incident_args.ts";
import { defineCommand } from "../../../command.ts";

export default defineCommand({
  summary: "Give up a role: commander, unless you say which",
  args: { ...roleWordArg, ...incidentArg, ...clientArgs },
  examples: ["svc incident role drop scribe"],
  notes: ["An incident keeps its commander until somebody else takes over: svc incident role give USER."],
  async run(options, io) {
    const { roleCommand } = await import("../../../client/incident_participants.ts");
    await roleCommand("drop", options, io);
  },
});
