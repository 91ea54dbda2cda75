import { defineCommand } from "../../command.ts";
import { databaseUrlIfSet } from "../../database_url.ts";

export default defineCommand({
  args: {
    heads: {
      type: "positional",
      multiple: true,
      required: false,
      description: "The heads to join: heads (if left out), or the id of each",
    },
    message: { type: "string", short: "m", metavar: "TEXT", description: "What it joins (otherwise: merge)" },
    revId: { type: "string", metavar: "ID", description: "Its id (otherwise the time and the message)" },
    unchecked: { type: "boolean", description: "Do not apply the heads to empty databases first" },
  },
  examples: ["svc database merge", 'svc database merge -m "cost and documents"'],
  notes: [
    "Two branches of work that each wrote a revision give a schema two heads, and an upgrade does not choose. This writes a revision that follows all of them and changes nothing itself.",
    "First it applies the heads in each order to an empty database beside that of SVC_DATABASE_URL, and drops it again: if one fails after the other, or the schemas differ, no merge is written. Rows are not tried.",
  ],
  async run({ heads, message, revId, unchecked }, io) {
    const { mergeHeads } = await import("../../../drizzle/revision/create.ts");
    const named = heads?.filter((name) => name !== "heads") ?? [];
    const created = await mergeHeads({
      ...(named.length > 0 ? { heads: named } : {}),
      ...{ message, id: revId, unchecked, now: io.clock.now() },
      url: unchecked ? undefined : await databaseUrlIfSet(io),
    });
    io.stdout.write(created ? `Wrote ${created.folder}\n` : "Nothing to do: there is one head\n");
  },
});
