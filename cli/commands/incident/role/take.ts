import { defineCommand } from "../../../command.ts";
import { clientArgs, incidentArg, roleWordArg } from "../../../incident/args.ts";

export default defineCommand({
  summary: "Take a role in an incident: commander, unless you say which",
  args: { ...roleWordArg, ...incidentArg, ...clientArgs },
  examples: [
    "svc incident role take",
    "svc incident role take scribe",
    "svc incident role take INC-44 commander",
  ],
  notes: ["Who takes command takes it over from the present commander. Who does not take part yet joins."],
  async run(options, io) {
    const { roleCommand } = await import("../../../incident/participants.ts");
    await roleCommand("take", options, io);
  },
});
