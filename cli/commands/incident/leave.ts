import { clientArgs, idArg } from "../../client/incident_args.ts";
import { defineCommand } from "../../command.ts";

export default defineCommand({
  summary: "Leave an incident, with all your roles in it",
  args: { ...idArg, ...clientArgs },
  examples: ["svc incident leave", "svc incident leave INC-44"],
  notes: ["A commander hands over first: svc incident role give USER."],
  async run(options, io) {
    const { leaveCommand } = await import("../../client/incident_participants.ts");
    await leaveCommand(options, io);
  },
});
