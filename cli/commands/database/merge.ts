import { defineCommand } from "../../command.ts";

export default defineCommand({
  args: {
    message: { type: "string", short: "m", metavar: "TEXT", description: "What it joins (otherwise: merge)" },
    revId: { type: "string", metavar: "ID", description: "Its id (otherwise the time and the message)" },
  },
  examples: ["svc database merge", 'svc database merge -m "cost and documents"'],
  notes: [
    "Two branches of work that each wrote a revision give a schema two heads, and an upgrade does not choose. This writes a revision that follows all of them and changes nothing itself.",
  ],
  async run({ message, revId }, io) {
    const { mergeHeads } = await import("../../../core/revision/create.ts");
    const created = await mergeHeads({ message, id: revId, now: io.clock.now() });
    io.stdout.write(created ? `Wrote ${created.folder}\n` : "Nothing to do: there is one head\n");
  },
});
