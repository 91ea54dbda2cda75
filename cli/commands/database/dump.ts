import { version as release } from "../../../package.json" with { type: "json" };
import { defineCommand } from "../../command.ts";
import { backupFile, backupPath, backupText, progressLine, stoppable } from "../../database/backup.ts";
import { databaseUrl } from "../../database/url.ts";

export default defineCommand({
  summary: "Back up the database to svc-backup.dump",
  args: {},
  examples: ["svc database dump"],
  notes: [
    `Writes a consistent backup to ${backupFile} in the working directory; servers can keep running. An existing file is replaced only after the new one is complete and checked. Only its owner can read the file.`,
    "Contains the rows of svc's tables; the revisions create the tables when it is restored. Needs no tools of PostgreSQL.",
  ],
  async run(_args, io) {
    const path = backupPath();
    const url = await databaseUrl(io);
    const { dump } = await import("../../../drizzle/backup/dump.ts");
    const { progress, notice, clear } = progressLine(io);
    const backup = await stoppable(io, (signal) =>
      dump({ url, path, release, clock: io.clock, signal, progress, notice }),
    ).finally(clear);
    io.stdout.write(`Wrote ${backupText(backup)}\n`);
  },
});
