import { Conflict } from "../../../platform/errors.ts";
import { defineCommand } from "../../command.ts";
import { progressLine } from "../../database/backup.ts";
import { lockTimeout } from "../../database/lock_timeout.ts";
import { databaseUrl } from "../../database/url.ts";
import { UsageError } from "../../errors.ts";
import { printJson } from "../../text.ts";

export default defineCommand({
  summary: "Resolve edited or interrupted revisions",
  args: {
    revision: {
      type: "positional",
      required: false,
      description: "Revision to repair (with --accept, default: all)",
    },
    accept: { type: "boolean", description: "Its files were edited, and the database matches them" },
    applied: { type: "boolean", description: "It was interrupted after its statement took effect" },
    notApplied: { type: "boolean", description: "It was interrupted before its statement took effect" },
    json: { type: "boolean", description: "Print the list as JSON" },
    lockTimeout,
  },
  examples: [
    "svc database repair",
    "svc database repair --accept",
    "svc database repair 20261125T2150_initial --applied",
  ],
  notes: [
    "Without an option, lists differences between the files and the database, and exits with 1 if there are any. With an option, records your decision; the schema itself is not changed.",
  ],
  async run({ revision: id, accept, applied, notApplied, json, lockTimeout: patience }, io) {
    const chosen = Object.entries({ accept, applied, notApplied }).filter(([, on]) => on);
    if (chosen.length > 1) throw new UsageError("--accept, --applied and --not-applied exclude each other");
    const decision = chosen[0]?.[0] as "accept" | "applied" | "notApplied" | undefined;
    if (decision && decision !== "accept" && id === undefined)
      throw new UsageError("missing argument: REVISION");
    if (decision && json)
      throw new UsageError("--json cannot be combined with --accept, --applied or --not-applied");
    const url = await databaseUrl(io);
    const { notice } = progressLine(io);
    const { findFaults, repair } = await import("../../../drizzle/revision/stamp.ts");
    if (decision) {
      const repaired = await repair({ url, id, decision, patience, notice });
      for (const one of repaired) io.stdout.write(`Repaired ${one}\n`);
      if (repaired.length === 0) io.stdout.write("Nothing to accept: no applied revision was edited\n");
      return;
    }
    const faults = await findFaults({ url, patience, notice });
    if (json) printJson(io, faults);
    for (const { id: name, text } of json ? [] : faults) io.stdout.write(`${name} ${text}\n`);
    if (faults.length > 0)
      throw new Conflict(
        `${faults.length} ${faults.length === 1 ? "revision needs" : "revisions need"} attention`,
      );
    if (!json) io.stdout.write("Nothing to do: files and database agree\n");
  },
});
