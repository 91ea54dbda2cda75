import { version as release } from "../../../package.json" with { type: "json" };
import { defineCommand } from "../../command.ts";
import { backupFile, backupPath, backupText, progressLine, stoppable } from "../../database/backup.ts";
import { databaseUrl } from "../../database/url.ts";

export default defineCommand({
  summary: "Back up the database to svc-backup.dump",
  args: {
    format: {
      type: "enum",
      metavar: "FORMAT",
      choices: ["auto", "custom", "portable"],
      default: "auto",
      description: "custom needs pg_dump; auto is portable if no pg_dump is installed",
    },
  },
  examples: ["svc database dump", "svc database dump --format portable"],
  notes: [
    `Writes a consistent backup to ${backupFile} in the working directory; servers can keep running. An existing file is replaced only after the new one is complete and checked. Only its owner can read the file.`,
    "The custom format needs pg_dump of the server's version, in the PATH or where packages install it, and pg_restore can read it. If pg_dump is installed only in other versions, auto fails, too. The portable format needs no tool, and only svc can read it.",
  ],
  async run({ format }, io) {
    const path = backupPath();
    const url = await databaseUrl(io);
    const { dump } = await import("../../../drizzle/backup/dump.ts");
    const { progress, clear } = progressLine(io);
    const { clock, env } = io;
    const backup = await stoppable(io, (signal) =>
      dump({ url, path, format, release, clock, env, signal, progress }),
    ).finally(clear);
    io.stdout.write(`Wrote ${backupText(backup)}\n`);
  },
});
