import { defineCommand } from "../../command.ts";
import { databaseUrlIfSet } from "../../database/url.ts";

export default defineCommand({
  summary: "Create a revision that merges several heads",
  args: {
    heads: {
      type: "positional",
      multiple: true,
      required: false,
      metavar: "HEAD",
      description: "Revisions to merge (default: all heads)",
    },
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
    unchecked: { type: "boolean", description: "Skip the test of the merge on an empty database" },
  },
  examples: ["svc database merge", 'svc database merge -m "cost and documents"'],
  notes: [
    "When two branches each add a revision, there are two heads, and an upgrade stops. This creates a revision that follows both and changes nothing.",
    "First, it applies the heads in each order to a temporary empty database on the server of SVC_DATABASE_URL. If one fails after the other, or the schemas differ, it creates no revision. It does not test with data.",
  ],
  async run({ heads, message, revId, unchecked }, io) {
    const { mergeHeads } = await import("../../../drizzle/revision/create.ts");
    const named = heads?.filter((name) => name !== "heads") ?? [];
    const created = await mergeHeads({
      heads: named.length > 0 ? named : undefined,
      message,
      id: revId,
      unchecked,
      now: io.clock.now(),
      url: unchecked ? undefined : await databaseUrlIfSet(io),
    });
    io.stdout.write(created ? `Wrote ${created.folders[0]}\n` : "Nothing to do: there is one head\n");
  },
});
