import { defineCommand } from "../../command.ts";
import { clientArgs, incidentArg, othersArg } from "../../incident/args.ts";
import { linkCommand } from "../../incident/link.ts";

export default defineCommand({
  summary: "Link an incident with related ones, or mark it as a duplicate",
  args: {
    ...othersArg,
    ...incidentArg,
    duplicate: { type: "boolean", description: "Mark the incident as a duplicate of the other one" },
    ...clientArgs,
  },
  examples: ["svc incident link INC-41", "svc incident link INC-44 INC-41 --duplicate"],
  notes: ["Both incidents show the link, to those who may see the other one."],
  run: (options, io) => linkCommand(options, io),
});
