import { defineCommand } from "../../command.ts";
import { clientArgs, idArg } from "../../incident/args.ts";
import { stateCommand } from "../../incident/state.ts";

export default defineCommand({
  summary: "Reopen an incident: it is Active again",
  args: { ...idArg, ...clientArgs },
  examples: ["svc incident reopen", "svc incident reopen INC-44"],
  run: (options, io) => stateCommand("Active", options, io),
});
