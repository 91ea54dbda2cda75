import { defineCommand } from "../../command.ts";
import { databaseUrl } from "../../database/url.ts";

export default defineCommand({
  summary: "Insert the default incident types, priorities and cost constants",
  args: {},
  examples: ["svc database populate"],
  notes: [
    "Existing rows with the name of a default are kept, so changed defaults are safe. A default that you renamed or deleted is inserted again.",
  ],
  async run(_options, io) {
    const url = await databaseUrl(io);
    const [{ openDatabase }, { populate }, { createdLines }] = await Promise.all([
      import("../../../drizzle/client.ts"),
      import("../../../core/populate/populate.ts"),
      import("../../database/revisions.ts"),
    ]);
    const { db, close } = openDatabase(url, 1);
    try {
      const { created } = await populate(db);
      for (const line of createdLines(created)) io.stdout.write(`${line}\n`);
      if (created.length === 0) io.stdout.write("Nothing to do: all defaults exist\n");
    } finally {
      await close();
    }
  },
});
