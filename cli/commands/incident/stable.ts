import { defineCommand } from "../../command.ts";
import { clientArgs, idArg } from "../../incident/args.ts";
import { stateCommand } from "../../incident/state.ts";

export default defineCommand({
  summary: "Mark an incident as stable: the harm is over, the work is not",
  args: { ...idArg, ...clientArgs },
  examples: ["svc incident stable", "svc incident stable INC-44"],
  run: (options, io) => stateCommand("Stable", options, io),
});
