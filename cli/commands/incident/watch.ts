import { defineCommand } from "../../command.ts";
import { idArg, serverArgs } from "../../incident/args.ts";
import { watchCommand } from "../../incident/watch.ts";
import { idOf } from "../../incident/write.ts";

export default defineCommand({
  summary: "Show an incident, or all open ones, as they change",
  args: {
    id: {
      type: "positional",
      required: false,
      metavar: "ID",
      description: "The incident: INC-7, its number or its URL (default: all that are open)",
    },
    incident: idArg.incident,
    since: {
      type: "string",
      metavar: "TIME",
      description: "Start with the events since then: 2h, 14:05, 2026-11-20 (default: the last ten)",
    },
    until: {
      type: "enum",
      choices: ["stable", "closed"],
      metavar: "STATUS",
      description: "Exit when the incident has this status",
    },
    ...serverArgs,
    json: { type: "boolean", description: "Print a line of JSON for each event" },
  },
  examples: [
    "svc incident watch",
    "svc incident watch INC-44",
    "svc incident watch INC-44 --since 1h",
    "svc incident watch INC-44 --until stable && echo Done",
    "svc incident watch --json | jq -r 'select(.kind == \"incident.reported\") | .incident'",
  ],
  notes: [
    "Runs until Ctrl-C, until the incident has STATUS, or until you may no longer see it. If the connection is lost, or you sign in again in another terminal (svc login), it continues after the last event. Without ID, the open incidents and their latest events fill the screen, and q quits. Without a terminal, it prints a line for each event. What the server does by itself shares a line, except with --json.",
  ],
  run: ({ incident, ...options }, io) =>
    watchCommand({ ...options, id: idOf({ id: options.id, incident }) }, io),
});
