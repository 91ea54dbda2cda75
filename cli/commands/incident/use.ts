import { defineCommand } from "../../command.ts";
import { UsageError } from "../../errors.ts";
import { clientArgs, idArg } from "../../incident/args.ts";
import { idOf } from "../../incident/write.ts";
import { printJson } from "../../text.ts";

export default defineCommand({
  summary: "Choose the default incident of the other commands",
  args: {
    id: {
      type: "positional",
      required: false,
      metavar: "ID",
      description: "The incident: INC-7, its number or its URL",
    },
    incident: idArg.incident,
    none: { type: "boolean", description: "Choose no incident" },
    ...clientArgs,
  },
  examples: ["svc incident use INC-44", "svc incident use --none"],
  notes: ["SVC_INCIDENT takes precedence, and so does an incident on the command line."],
  async run({ none, json, ...named }, io) {
    const id = idOf(named);
    const defaults = await import("../../incident/default.ts");
    if (none) {
      if (id !== undefined) throw new UsageError("give either ID or --none");
      defaults.clearDefaultIncident(io.env);
      return;
    }
    if (id === undefined) throw new UsageError("missing argument: ID");
    const { printIncident, IncidentClient } = await import("../../incident/incident.ts");
    const incident = await IncidentClient.within(io, async (client) => {
      const found = await client.resolve(id);
      const chosen = { server: client.session.server.base, id: found.id, name: found.name };
      defaults.writeDefaultIncident(io.env, chosen);
      return found;
    });
    printIncident(io, incident);
    const note = defaults.overridden(io.env);
    if (note !== undefined) io.stderr.write(`${note}\n`);
    if (json) printJson(io, { id: incident.id, name: incident.name });
  },
});
