import { decideWith, idArgument } from "../../access/decision.ts";
import { clientArgs } from "../../client/args.ts";
import { defineCommand } from "../../command.ts";

export default defineCommand({
  summary: "Cancel your access request",
  args: { ...idArgument, ...clientArgs },
  examples: ["svc access cancel 7"],
  run: ({ id, ...options }, io) => decideWith(io, "cancel", id, options),
});
