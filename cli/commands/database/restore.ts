import type { DatabaseDescription } from "../../../drizzle/revision/drop.ts";
import { defineCommand } from "../../command.ts";
import { confirmByName, contentOf } from "../../confirm.ts";
import { backupFile, backupPath, backupText, progressLine, stoppable } from "../../database/backup.ts";
import { lockTimeout } from "../../database/lock_timeout.ts";
import { databaseUrl } from "../../database/url.ts";

export default defineCommand({
  summary: "Restore the database from svc-backup.dump",
  args: {
    yes: { type: "boolean", short: "y", description: "Skip the confirmation" },
    example: { type: "boolean", description: "Load the example data instead of a backup" },
    lockTimeout,
  },
  examples: ["svc database restore", "svc database restore --yes", "svc database restore --example"],
  notes: [
    `Replaces the contents of the database with ${backupFile} from the working directory. If the database is not empty, the backup is first loaded and checked in a temporary database; then one transaction replaces the tables. If anything fails, or you press Ctrl-C, the database is unchanged. Then the schema is upgraded, and the triggers are installed. A missing database is created.`,
    "If the database is not empty, asks for its name on a terminal, and requires --yes elsewhere. Servers can keep running: they wait until the restore is done.",
    "--example loads three months of incidents of a fictional company, up to now.",
  ],
  async run({ yes, example, lockTimeout: patience }, io) {
    const url = await databaseUrl(io);
    const { progress, notice, clear } = progressLine(io);
    const confirm = async (database: DatabaseDescription) => {
      clear();
      const { name, where, sessions } = database;
      const use =
        sessions === 0 ? "" : `, which ${sessions} other session${sessions === 1 ? " uses" : "s use"} now`;
      const what = `This replaces ${contentOf(database)} of the database ${name} on ${where}${use}.`;
      await confirmByName(io, what, name, yes);
    };
    if (example) {
      const { restoreExample } = await import("../../../trial/example/restore.ts");
      const { incidents, documents, people, head } = await stoppable(io, (signal) =>
        restoreExample({ url, confirm, patience, signal, progress, notice }),
      ).finally(clear);
      io.stdout.write(
        `Loaded the example: ${incidents} incidents, ${documents} documents, ${people} people (revision ${head})\n`,
      );
      return;
    }
    const { restore } = await import("../../../drizzle/backup/restore.ts");
    const path = backupPath();
    const restored = await stoppable(io, (signal) =>
      restore({ url, path, confirm, patience, signal, progress, notice }),
    ).finally(clear);
    const upgraded =
      restored.applied.length === 0 ? "" : `, brought to head by ${restored.applied.join(", ")}`;
    io.stdout.write(`Restored ${backupText(restored)}${upgraded}\n`);
  },
});
