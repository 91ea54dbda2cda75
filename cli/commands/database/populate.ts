import { defineCommand } from "../../command.ts";
import { databaseUrl } from "../../database_url.ts";

export default defineCommand({
  args: {},
  examples: ["svc database populate"],
  notes: [
    "SVC_DATABASE_URL (or SVC_DATABASE_URL_FILE) names the database. What is there under a default's name stays as it is, so a default that you changed is safe; one that you renamed or deleted is written again.",
  ],
  async run(_options, io) {
    const url = await databaseUrl(io);
    const [{ openDatabase }, { populate }] = await Promise.all([
      import("../../../drizzle/client.ts"),
      import("../../../core/populate/populate.ts"),
    ]);
    const { db, close } = openDatabase(url, 1, undefined, { fetch_types: false });
    try {
      const { created } = await populate(db);
      for (const { table, name } of created) {
        io.stdout.write(`Created ${table.replaceAll("_", " ")} ${name}\n`);
      }
      if (created.length === 0) io.stdout.write("Nothing to do: every default is there\n");
    } finally {
      await close();
    }
  },
});
