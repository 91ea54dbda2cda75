import { decideWith, idArgument } from "../../access/decision.ts";
import { clientArgs } from "../../client/args.ts";
import { defineCommand } from "../../command.ts";

export default defineCommand({
  summary: "Deny an access request or withdraw its approval",
  args: {
    ...idArgument,
    note: { type: "string", short: "n", metavar: "TEXT", description: "A note for the requester" },
    ...clientArgs,
  },
  examples: ["svc access requests", "svc access deny 7"],
  run: ({ id, note, ...options }, io) => decideWith(io, "deny", id, options, note),
});
