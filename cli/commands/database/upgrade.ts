import { defineCommand } from "../../command.ts";

export default defineCommand({
  args: {},
  examples: ["SVC_DATABASE_URL=postgres://svc@localhost/svc svc database upgrade"],
  notes: [
    "SVC_DATABASE_URL (or SVC_DATABASE_URL_FILE) names the database. Several upgrades at once are safe: one works, the others wait.",
  ],
  async run(_options, io) {
    const [{ readConfig }, { readEnvironment }, { ConfigurationError }, { upgrade }] = await Promise.all([
      import("../../../core/config.ts"),
      import("../../../core/environment.ts"),
      import("../../../core/errors.ts"),
      import("../../../core/revision/upgrade.ts"),
    ]);
    const url = readConfig(readEnvironment(io.env)).databaseUrl;
    if (url === undefined) {
      throw new ConfigurationError([
        "SVC_DATABASE_URL is not set: give it as postgres://user:password@host:5432/name",
      ]);
    }
    const log = (revision: string) => io.stdout.write(`Applied ${revision}\n`);
    const { applied, head } = await upgrade({ url, log });
    if (applied.length === 0) io.stdout.write(`Nothing to do: the schema is at ${head}\n`);
  },
});
