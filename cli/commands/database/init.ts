import { defineCommand } from "../../command.ts";
import { lockTimeout } from "../../database/lock_timeout.ts";
import { databaseUrl } from "../../database/url.ts";

export default defineCommand({
  summary: "Create the database, its schema and the default data",
  args: { lockTimeout },
  examples: ["SVC_DATABASE_URL=postgres://svc@localhost/svc svc database init"],
  notes: [
    "Creates the database if it does not exist (which requires CREATEDB), upgrades the schema, installs the triggers, and inserts the defaults of `svc database populate`. It can be repeated, and run several times at once.",
  ],
  async run({ lockTimeout: patience }, io) {
    const url = await databaseUrl(io);
    const [{ init }, { createdLines, follow }] = await Promise.all([
      import("../../../core/populate/init.ts"),
      import("../../database/revisions.ts"),
    ]);
    const { database, applied, created, head } = await follow(io, "Applying", "Applied", (progress) =>
      init({ url, patience, ...progress }),
    );
    if (database !== undefined) io.stdout.write(`Created database ${database}\n`);
    for (const line of createdLines(created)) io.stdout.write(`${line}\n`);
    if (database === undefined && applied.length + created.length === 0) {
      io.stdout.write(`Nothing to do: the schema is at ${head}, and all defaults exist\n`);
    }
  },
});
