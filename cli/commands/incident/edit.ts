import { defineCommand } from "../../command.ts";
import { clientArgs, idArg, textArgs } from "../../incident/args.ts";
import { editCommand } from "../../incident/state.ts";

export default defineCommand({
  summary: "Change an incident",
  args: {
    ...idArg,
    title: { type: "string", metavar: "TITLE", description: "The new title" },
    description: { type: "string", short: "d", metavar: "TEXT", description: "The new description" },
    ...textArgs("the description"),
    type: { type: "string", short: "t", metavar: "TYPE", description: "The new type" },
    priority: { type: "string", short: "p", metavar: "PRIORITY", description: "The new priority" },
    resolution: { type: "string", short: "r", metavar: "TEXT", description: "The new resolution" },
    restricted: { type: "boolean", description: "Only its participants may see it" },
    open: { type: "boolean", description: "Everybody may see it" },
    ...clientArgs,
  },
  examples: ["svc incident edit", 'svc incident edit INC-44 --title "Checkout is slow" -p Low'],
  notes: [
    "Without an option, title and description open in your editor (VISUAL, or else EDITOR).",
    "If somebody else changed the incident meanwhile, their change stays; if they changed the same field, nothing is saved, both versions are shown, and text from the editor is kept in a file.",
  ],
  run: (options, io) => editCommand(options, io),
});
