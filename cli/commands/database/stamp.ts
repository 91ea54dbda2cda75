import { defineCommand } from "../../command.ts";
import { databaseUrl } from "../../database_url.ts";
import { lockTimeout } from "../../lock_timeout.ts";

export default defineCommand({
  args: {
    revision: { type: "positional", description: "head, base, or a revision" },
    purge: { type: "boolean", description: "Forget revisions that this release does not know, too" },
    lockTimeout,
  },
  instead: {
    "--sql": "svc database stamp REV, which writes to the table `revision` only",
  },
  examples: ["svc database stamp head", "svc database stamp --purge head"],
  notes: [
    "Notes that the database is at that revision, and runs nothing: for a schema that came there by another way. `svc database check --drift` tells whether it is true.",
  ],
  async run({ revision, purge, lockTimeout: patience }, io) {
    const url = await databaseUrl(io);
    const { stamp } = await import("../../../drizzle/revision/stamp.ts");
    const heads = await stamp({ url, target: revision, purge, patience });
    io.stdout.write(`Stamped: the schema is at ${heads.join(", ") || "base"}\n`);
  },
});
