import { backupFile, backupText, progressLine, stoppable } from "../../backup.ts";
import { defineCommand } from "../../command.ts";
import { confirmByName } from "../../confirm.ts";
import { databaseUrl } from "../../database_url.ts";
import { lockTimeout } from "../../lock_timeout.ts";

export default defineCommand({
  args: {
    yes: { type: "boolean", short: "y", description: "Do not ask before what is there is replaced" },
    example: { type: "boolean", description: "Load the example data instead of a backup" },
    lockTimeout,
  },
  examples: ["svc database restore", "svc database restore --yes", "svc database restore --example"],
  notes: [
    `Replaces what the database holds by what ${backupFile} in the working directory holds. If there are data to lose, the backup is first loaded and checked in a scratch database beside it; then one transaction replaces the tables. If anything fails, or you press Ctrl-C, the database is as it was. Then the schema is brought to the newest revision, and the triggers are installed. A database that is missing is created.`,
    "Into a database that has tables: on a terminal it asks for the database's name, elsewhere it refuses unless --yes is given. Servers that are running need not be stopped: they wait until it is done.",
    "A backup of the custom format needs the pg_restore of the server's version.",
    "With --example no file is read: the database then holds three months of an imaginary company's incidents, which end now.",
  ],
  async run({ yes, example, lockTimeout: patience }, io) {
    const url = await databaseUrl(io);
    const [{ restore }, { resolve }] = await Promise.all([
      import("../../../drizzle/backup/restore.ts"),
      import("node:path"),
    ]);
    const { progress, notice, clear } = progressLine(io);
    const path = resolve(backupFile);
    const confirm = async ({ name, where, tables, sessions }: Described) => {
      clear();
      const use =
        sessions === 0 ? "" : `, which ${sessions} other session${sessions === 1 ? " uses" : "s use"} now`;
      const what = `This replaces all ${tables} tables of the database ${name} on ${where}${use}.`;
      await confirmByName(io, what, name, yes);
    };
    try {
      if (example) {
        const { restoreExample } = await import("../../../trial/example/restore.ts");
        const { incidents, documents, people, head } = await stoppable(io, (signal) =>
          restoreExample({ url, confirm, patience, signal, progress, notice }),
        );
        clear();
        io.stdout.write(
          `Loaded the example: ${incidents} incidents, ${documents} documents, ${people} people (revision ${head})\n`,
        );
        return;
      }
      const restored = await stoppable(io, (signal) =>
        restore({ url, path, env: io.env, confirm, patience, signal, progress, notice }),
      );
      clear();
      const upgraded =
        restored.applied.length === 0 ? "" : `, brought to head by ${restored.applied.join(", ")}`;
      io.stdout.write(`Restored ${backupText(restored)}${upgraded}\n`);
    } finally {
      clear();
    }
  },
});

/** As drizzle/revision/drop.ts describes a database. */
interface Described {
  name: string;
  where: string;
  tables: number;
  sessions: number;
}
