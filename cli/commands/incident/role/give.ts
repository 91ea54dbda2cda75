import { clientArgs, incidentArg, roleUserArg } from "../../../client/incident_args.ts";
import { defineCommand } from "../../../command.ts";

export default defineCommand({
  summary: "Give a role to somebody: commander, unless you say which",
  args: { ...roleUserArg, ...incidentArg, ...clientArgs },
  examples: ["svc incident role give dana", "svc incident role give dana scribe"],
  notes: ["Who takes command takes it over from the present commander. Who does not take part yet joins."],
  async run(options, io) {
    const { roleCommand } = await import("../../../client/incident_participants.ts");
    await roleCommand("give", options, io);
  },
});
