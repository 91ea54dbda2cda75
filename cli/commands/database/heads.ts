import { defineCommand } from "../../command.ts";

export default defineCommand({
  args: { json: { type: "boolean", description: "Print JSON" } },
  examples: ["svc database heads"],
  notes: [
    "The heads of the revisions that this release has; `svc database current` shows those of the database.",
  ],
  async run({ json }, io) {
    const [{ readRevisions }, { headsOf, inOrder }] = await Promise.all([
      import("../../../drizzle/revision/read.ts"),
      import("../../../drizzle/revision/graph.ts"),
    ]);
    const revisions = inOrder(await readRevisions());
    const heads = new Set(headsOf(revisions));
    const rows = revisions.filter(({ id }) => heads.has(id));
    if (json) {
      const list = rows.map(({ id, parents, manifest }) => ({ id, parents, message: manifest.message }));
      io.stdout.write(`${JSON.stringify(list)}\n`);
      return;
    }
    for (const { id } of rows) io.stdout.write(`${id} (head)\n`);
    if (rows.length > 1) io.stderr.write("Several heads: svc database merge joins them\n");
  },
});
