import { defineCommand } from "../../command.ts";
import { clientArgs } from "../../incident/args.ts";
import { listCommand } from "../../incident/list.ts";

export default defineCommand({
  summary: "List incidents",
  args: {
    status: {
      type: "enum",
      short: "s",
      metavar: "STATUS",
      default: "open",
      description: "Only these",
      choices: ["active", "stable", "closed", "open", "all"],
    },
    mine: { type: "boolean", description: "Only those that you take part in" },
    commander: { type: "string", metavar: "USER", description: "Only those that USER commands" },
    type: { type: "string", short: "t", metavar: "TYPE", description: "Only those of this type" },
    priority: { type: "string", short: "p", metavar: "PRIORITY", description: "Only those of this priority" },
    search: { type: "string", short: "S", metavar: "QUERY", description: "Only those with these words" },
    since: {
      type: "string",
      metavar: "TIME",
      description: "Only those reported since then: 2h, 7d, 14:05, 2026-11-20",
    },
    limit: { type: "number", short: "L", metavar: "COUNT", default: 30, description: "At most so many" },
    ...clientArgs,
  },
  examples: [
    "svc incident list",
    "svc incident list --mine --status all",
    'svc incident list -s closed -S "disk full" --since 30d',
    "svc incident list --json | jq -r '.items[].name'",
  ],
  notes: [
    "Open incidents are Active or Stable. On a narrow terminal, titles are cut, and then COMMANDER and PRIORITY left out.",
  ],
  run: (options, io) => listCommand(options, io),
});
