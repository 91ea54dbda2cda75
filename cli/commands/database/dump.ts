import { backupFile, backupText, progressLine, release, stoppable } from "../../backup.ts";
import { defineCommand } from "../../command.ts";
import { databaseUrl } from "../../database_url.ts";

export default defineCommand({
  args: {
    format: {
      type: "enum",
      metavar: "FORMAT",
      choices: ["auto", "custom", "portable"],
      default: "auto",
      description: "auto, custom (of pg_dump) or portable (needs no tool)",
    },
  },
  examples: ["svc database dump", "svc database dump --format portable"],
  notes: [
    `Writes ${backupFile} in the working directory: everything as it is at one moment, while the servers run. What the file held before stays until the new one is whole and has been checked; a dump that fails or is stopped leaves nothing of itself. Only its owner can read the file.`,
    "The custom format is made by the pg_dump of the server's version, from the PATH or where packages put it, and pg_restore can read it too. Where there is no pg_dump at all, auto takes the portable format, which only svc reads.",
  ],
  async run({ format }, io) {
    const url = await databaseUrl(io);
    const [{ dump }, { resolve }] = await Promise.all([
      import("../../../drizzle/backup/dump.ts"),
      import("node:path"),
    ]);
    const { progress, clear } = progressLine(io);
    const path = resolve(backupFile);
    const { clock, env } = io;
    try {
      const backup = await stoppable(io, (signal) =>
        dump({ url, path, format: format as "auto", release, clock, env, signal, progress }),
      );
      clear();
      io.stdout.write(`Wrote ${backupText(backup)}\n`);
    } finally {
      clear();
    }
  },
});
