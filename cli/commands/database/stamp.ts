import { defineCommand } from "../../command.ts";
import { progressLine } from "../../database/backup.ts";
import { lockTimeout } from "../../database/lock_timeout.ts";
import { databaseUrl } from "../../database/url.ts";

export default defineCommand({
  summary: "Set the revision of the database without running SQL",
  args: {
    revision: { type: "positional", description: "Revision, head or base" },
    lockTimeout,
  },
  instead: {
    "--sql": "svc database stamp REV, which changes only the table `revision`",
  },
  examples: ["svc database stamp head", "svc database stamp base"],
  notes: [
    "Use it for a schema that was created in another way. `svc database check --drift` checks that the schema matches the revision.",
  ],
  async run({ revision, lockTimeout: patience }, io) {
    const url = await databaseUrl(io);
    const { stamp } = await import("../../../drizzle/revision/stamp.ts");
    const { notice } = progressLine(io);
    const heads = await stamp({ url, target: revision, patience, notice });
    io.stdout.write(`Stamped: the schema is at ${heads.join(", ") || "base"}\n`);
  },
});
