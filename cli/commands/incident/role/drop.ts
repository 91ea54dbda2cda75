import { defineCommand } from "../../../command.ts";
import { clientArgs, incidentArg, roleWordArg } from "../../../incident/args.ts";

export default defineCommand({
  summary: "Give up a role: commander, unless you say which",
  args: { ...roleWordArg, ...incidentArg, ...clientArgs },
  examples: ["svc incident role drop scribe"],
  notes: ["An incident keeps its commander until somebody else takes over: svc incident role give USER."],
  async run(options, io) {
    const { roleCommand } = await import("../../../incident/participants.ts");
    await roleCommand("drop", options, io);
  },
});
