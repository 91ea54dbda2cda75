import { defineCommand } from "../../command.ts";
import { clientArgs, idArg } from "../../incident/args.ts";

export default defineCommand({
  summary: "Reopen an incident: it is Active again",
  args: { ...idArg, ...clientArgs },
  examples: ["svc incident reopen", "svc incident reopen INC-44"],
  async run(options, io) {
    const { stateCommand } = await import("../../incident/state.ts");
    await stateCommand("Active", options, io);
  },
});
