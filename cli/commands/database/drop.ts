import { defineCommand } from "../../command.ts";
import { confirmByName } from "../../confirm.ts";
import { lockTimeout } from "../../database/lock_timeout.ts";
import { databaseUrl } from "../../database/url.ts";

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
    const { name, where, tables, objects } = await describeDatabase(url);
    if (objects > 0) {
      await confirmByName(
        io,
        `This drops all ${tables} tables of the database ${name} on ${where}.`,
        name,
        yes,
      );
    }
    const dropped = await dropAll(url, patience);
    io.stdout.write(
      objects === 0 ? `Nothing to do: ${name} is empty\n` : `Dropped ${dropped} tables of ${name}\n`,
    );
  },
});
