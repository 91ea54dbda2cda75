import { decideWith, idArgument } from "../../access/decision.ts";
import { clientArgs } from "../../client/args.ts";
import { defineCommand } from "../../command.ts";

export default defineCommand({
  summary: "Mark break-glass access as reviewed",
  args: { ...idArgument, ...clientArgs },
  examples: ["svc access review 7"],
  run: ({ id, ...options }, io) => decideWith(io, "review", id, options),
});
