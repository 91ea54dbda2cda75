import { defineCommand } from "../../command.ts";
import { clientArgs, incidentArg, othersArg } from "../../incident/args.ts";
import { unlinkCommand } from "../../incident/link.ts";

export default defineCommand({
  summary: "Remove the link between incidents",
  args: { ...othersArg, ...incidentArg, ...clientArgs },
  examples: ["svc incident unlink INC-41", "svc incident unlink INC-44 INC-41"],
  run: (options, io) => unlinkCommand(options, io),
});
