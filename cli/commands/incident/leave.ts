import { defineCommand } from "../../command.ts";
import { clientArgs, idArg } from "../../incident/args.ts";

export default defineCommand({
  summary: "Leave an incident, with all your roles in it",
  args: { ...idArg, ...clientArgs },
  examples: ["svc incident leave", "svc incident leave INC-44"],
  notes: ["A commander hands over first: svc incident role give USER."],
  async run(options, io) {
    const { leaveCommand } = await import("../../incident/participants.ts");
    await leaveCommand(options, io);
  },
});
