import { defineCommand } from "../../command.ts";
import { confirmByName, contentOf } from "../../confirm.ts";
import { progressLine } from "../../database/backup.ts";
import { lockTimeout } from "../../database/lock_timeout.ts";
import { databaseUrl } from "../../database/url.ts";
import { counted } from "../../text.ts";

export default defineCommand({
  summary: "Drop all data",
  args: { yes: { type: "boolean", short: "y", description: "Skip the confirmation" }, lockTimeout },
  examples: ["svc database drop", "svc database drop --yes"],
  notes: [
    "Drops all tables; the empty database stays. Asks for the name of the database on a terminal, and requires --yes elsewhere. To start over, run `svc database init` or `svc database restore`.",
  ],
  async run({ yes, lockTimeout: patience }, io) {
    const url = await databaseUrl(io);
    const { describeDatabase, dropAll } = await import("../../../drizzle/revision/drop.ts");
    const database = await describeDatabase(url);
    const { name, where, objects } = database;
    if (objects > 0) {
      const what = `This drops ${contentOf(database)} of the database ${name} on ${where}.`;
      await confirmByName(io, what, name, yes);
    }
    const tables = await dropAll({ url, patience, notice: progressLine(io).notice });
    const dropped = tables > 0 ? counted(tables, "table") : counted(objects, "object");
    io.stdout.write(objects === 0 ? `Nothing to do: ${name} is empty\n` : `Dropped ${dropped} of ${name}\n`);
  },
});
