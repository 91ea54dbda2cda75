import { clientArgs, idArg } from "../../client/incident_args.ts";
import { defineCommand } from "../../command.ts";

export default defineCommand({
  summary: "Reopen an incident: it is Active again",
  args: { ...idArg, ...clientArgs },
  examples: ["svc incident reopen", "svc incident reopen INC-44"],
  async run(options, io) {
    const { stateCommand } = await import("../../client/incident_state.ts");
    await stateCommand("Active", options, io);
  },
});
