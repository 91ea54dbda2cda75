import { defineCommand } from "../../command.ts";
import { clientArgs, idArg } from "../../incident/args.ts";
import { stateCommand } from "../../incident/state.ts";

export default defineCommand({
  summary: "Mark an incident as stable: the harm is stopped, the work is not done",
  args: { ...idArg, ...clientArgs },
  examples: ["svc incident stable", "svc incident stable INC-44"],
  run: (options, io) => stateCommand("Stable", options, io),
});
