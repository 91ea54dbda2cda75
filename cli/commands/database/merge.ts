import { defineCommand } from "../../command.ts";

export default defineCommand({
  summary: "Create a revision that merges all heads",
  args: {
    message: {
      type: "string",
      short: "m",
      metavar: "TEXT",
      description: "Short description (default: merge)",
    },
    revId: {
      type: "string",
      metavar: "ID",
      description: "Revision id (default: from the time and the message)",
    },
  },
  examples: ["svc database merge", 'svc database merge -m "cost and documents"'],
  notes: [
    "When two branches each add a revision, there are two heads, and an upgrade stops. This creates a revision that follows both and changes nothing.",
    "If both change the same thing in different ways, it names that and creates no revision. `svc database check --drift` tries the result on an empty database.",
  ],
  async run({ message, revId }, io) {
    const { mergeHeads } = await import("../../../drizzle/revision/create.ts");
    const created = await mergeHeads({
      message,
      id: revId,
      now: io.clock.now(),
    });
    io.stdout.write(created ? `Wrote ${created.folders[0]}\n` : "Nothing to do: there is one head\n");
  },
});
