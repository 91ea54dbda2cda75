import { defineCommand } from "../../command.ts";
import { progressLine } from "../../database/backup.ts";
import { lockTimeout } from "../../database/lock_timeout.ts";
import { databaseUrl } from "../../database/url.ts";
import { UsageError } from "../../errors.ts";

export default defineCommand({
  summary: "Resolve an edited or interrupted revision",
  args: {
    revision: { type: "positional", description: "Revision to repair" },
    accept: { type: "boolean", description: "Its files were edited, and the database matches them" },
    applied: { type: "boolean", description: "It was interrupted after its statement took effect" },
    notApplied: { type: "boolean", description: "It was interrupted before its statement took effect" },
    lockTimeout,
  },
  examples: [
    "svc database repair 20261125T2150_initial --accept",
    "svc database repair 20261125T2150_initial --applied",
  ],
  notes: [
    "Records your decision about a revision that `svc database upgrade` or `downgrade` refuses. The schema itself is not changed.",
  ],
  async run({ revision: id, accept, applied, notApplied, lockTimeout: patience }, io) {
    const chosen = Object.entries({ accept, applied, notApplied }).filter(([, on]) => on);
    if (chosen.length !== 1) throw new UsageError("needs one of --accept, --applied and --not-applied");
    const decision = chosen[0]![0] as "accept" | "applied" | "notApplied";
    const url = await databaseUrl(io);
    const { notice } = progressLine(io);
    const { repair } = await import("../../../drizzle/revision/stamp.ts");
    io.stdout.write(`Repaired ${await repair({ url, id, decision, patience, notice })}\n`);
  },
});
