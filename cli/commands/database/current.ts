import { Conflict } from "../../../platform/errors.ts";
import { defineCommand } from "../../command.ts";
import { databaseUrl } from "../../database/url.ts";
import { printJson } from "../../text.ts";

export default defineCommand({
  summary: "Show the revision of the database",
  args: {
    verbose: { type: "boolean", short: "v", description: "Show details of each revision" },
    checkHeads: {
      type: "boolean",
      description: "Exit with 1 if the database is not at the head of this release",
    },
    json: { type: "boolean", description: "Print JSON" },
  },
  examples: ["svc database current", "svc database current --verbose", "svc database current --json"],
  notes: [
    "Shows the revision of the database, and its state compared with this release: ok, ahead, behind, newer or heads. An unfinished revision without a transaction is shown as applying or reverting.",
  ],
  async run({ verbose, checkHeads, json }, io) {
    const url = await databaseUrl(io);
    const { history, inspectDatabase } = await import("../../../drizzle/revision/inspect.ts");
    const { state, current, head, interrupted } = await inspectDatabase(url);
    const check = () => {
      const isAtHeads = Bun.deepEquals(current.toSorted(), head.toSorted()) && interrupted.length === 0;
      if (checkHeads && !isAtHeads) throw new Conflict("The database is not at the head of this release");
    };
    if (json) {
      printJson(io, { state, current, head, interrupted });
      return check();
    }
    if (verbose) {
      const { describeRevision } = await import("../../database/revisions.ts");
      const shown = new Set([...current, ...interrupted.map(({ id }) => id)]);
      const entries = (await history(url)).filter(({ id }) => shown.has(id));
      io.stdout.write(entries.map(describeRevision).join("\n") || "base\n");
    } else {
      const isHead = (id: string) => head.includes(id);
      for (const id of current) io.stdout.write(`${id}${isHead(id) ? " (head)" : ""}\n`);
      for (const one of interrupted) io.stdout.write(`${one.id} (${one.state})\n`);
      if (current.length + interrupted.length === 0) io.stdout.write("base\n");
    }
    for (const one of interrupted) {
      const command = one.state === "applying" ? "upgrade" : "downgrade";
      io.stderr.write(
        `Revision ${one.id} is ${one.state}, or was interrupted: if no other command is running, continue with svc database ${command}\n`,
      );
    }
    const text = {
      ok: "",
      ahead: "Ahead of this release, but compatible with it",
      behind: `Behind this release, which has ${head.join(", ")}: run svc database ${head.length > 1 ? "merge" : "upgrade"}`,
      newer: `Newer than this release, which has ${head.join(", ")}`,
      heads: "Several heads: join them with svc database merge",
    }[state];
    if (text) io.stderr.write(`${text}\n`);
    check();
  },
});
