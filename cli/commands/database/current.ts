import { defineCommand } from "../../command.ts";
import { databaseUrl } from "../../database_url.ts";

export default defineCommand({
  args: { json: { type: "boolean", description: "Print JSON" } },
  examples: ["svc database current", "svc database current --json"],
  notes: ["What the database is at, and how that suits this release: ok, ahead, behind, newer or heads."],
  async run({ json }, io) {
    const url = await databaseUrl(io);
    const { inspectDatabase } = await import("../../../core/revision/inspect.ts");
    const { state, current, head } = await inspectDatabase(url);
    if (json) {
      io.stdout.write(`${JSON.stringify({ state, current, head })}\n`);
      return;
    }
    const isHead = (id: string) => head.includes(id);
    for (const id of current) io.stdout.write(`${id}${isHead(id) ? " (head)" : ""}\n`);
    if (current.length === 0) io.stdout.write("base\n");
    const text = {
      ok: "",
      ahead: "Ahead of this release, by revisions that are compatible with it",
      behind: `Behind this release, which has ${head.join(", ")}: svc database upgrade`,
      newer: `Newer than this release, which has ${head.join(", ")}`,
      heads: "Several heads: svc database merge joins them",
    }[state];
    if (text) io.stderr.write(`${text}\n`);
  },
});
