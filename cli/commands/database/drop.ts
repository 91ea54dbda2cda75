import { defineCommand } from "../../command.ts";
import { confirmByName } from "../../confirm.ts";
import { databaseUrl } from "../../database_url.ts";
import { lockTimeout } from "../../lock_timeout.ts";

export default defineCommand({
  args: { yes: { type: "boolean", short: "y", description: "Do not ask" }, lockTimeout },
  examples: ["svc database drop", "svc database drop --yes"],
  notes: [
    "Removes every table, and all data with it; the empty database stays. On a terminal it asks for the database's name, elsewhere it refuses unless --yes is given. `svc database init` begins anew, `svc database restore` brings a backup back.",
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
      objects === 0
        ? `Nothing to do: ${name} is empty
`
        : `Dropped ${dropped} tables of ${name}
`,
    );
  },
});
