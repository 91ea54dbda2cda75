import { clientArgs, idArg } from "../../client/incident_args.ts";
import { defineCommand } from "../../command.ts";

export default defineCommand({
  summary: "Mark an incident as stable: the harm is over, the work is not",
  args: { ...idArg, ...clientArgs },
  examples: ["svc incident stable", "svc incident stable INC-44"],
  async run(options, io) {
    const { stateCommand } = await import("../../client/incident_state.ts");
    await stateCommand("Stable", options, io);
  },
});
