import { defineCommand } from "../../command.ts";
import { clientArgs, idArg } from "../../incident/args.ts";
import { leaveCommand } from "../../incident/participants.ts";

export default defineCommand({
  summary: "Leave an incident, with all your roles in it",
  args: { ...idArg, ...clientArgs },
  examples: ["svc incident leave", "svc incident leave INC-44"],
  notes: ["A commander must hand over first: svc incident role give USER."],
  run: (options, io) => leaveCommand(options, io),
});
