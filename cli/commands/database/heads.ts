import { defineCommand } from "../../command.ts";
import { printJson } from "../../text.ts";

export default defineCommand({
  summary: "List the newest revisions of this release",
  args: {
    verbose: { type: "boolean", short: "v", description: "Show details of each revision" },
    json: { type: "boolean", description: "Print JSON" },
  },
  examples: ["svc database heads", "svc database heads --verbose"],
  notes: ["Lists the heads of this release. For the revision of the database, see `svc database current`."],
  async run({ verbose, json }, io) {
    const { headsOf, inOrder, readRevisions } = await import("../../../drizzle/revision/history.ts");
    const revisions = inOrder(await readRevisions());
    const heads = new Set(headsOf(revisions));
    const rows = revisions.filter(({ id }) => heads.has(id));
    if (json) {
      const list = rows.map(({ id, parents, manifest }) => ({ id, parents, message: manifest.message }));
      printJson(io, list);
      return;
    }
    if (verbose) {
      const [{ history }, { describeRevision }] = await Promise.all([
        import("../../../drizzle/revision/inspect.ts"),
        import("../../database/revisions.ts"),
      ]);
      const entries = (await history()).filter(({ id }) => heads.has(id));
      io.stdout.write(entries.map(describeRevision).join("\n"));
    } else for (const { id } of rows) io.stdout.write(`${id} (head)\n`);
    if (rows.length > 1) io.stderr.write("Several heads: join them with svc database merge\n");
  },
});
