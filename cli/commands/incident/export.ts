import { defineCommand } from "../../command.ts";
import { clientArgs, idArg } from "../../incident/args.ts";
import { exportCommand } from "../../incident/export.ts";

export default defineCommand({
  summary: "Export an incident with all its parts",
  args: {
    ...idArg,
    format: {
      type: "enum",
      choices: ["md", "json", "html"],
      default: "md",
      metavar: "FORMAT",
      description: "md, json or html",
    },
    output: {
      type: "string",
      short: "o",
      metavar: "FILE",
      description: "Where to write it (default: stdout)",
    },
    force: { type: "boolean", description: "Replace FILE if it exists" },
    ...clientArgs,
  },
  examples: ["svc incident export INC-44 -o INC-44.md", "svc incident export --format html -o review.html"],
  notes: ["What you may not see is not in it."],
  run: (options, io) => exportCommand(options, io),
});
