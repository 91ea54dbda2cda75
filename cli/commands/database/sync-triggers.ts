import { defineCommand } from "../../command.ts";
import { lockTimeout } from "../../database/lock_timeout.ts";
import { databaseUrl } from "../../database/url.ts";

export default defineCommand({
  summary: "Install missing triggers and repair changed ones",
  args: { lockTimeout },
  examples: ["svc database sync-triggers"],
  notes: [
    "Creates missing triggers, recreates changed ones and removes obsolete ones, as defined in drizzle/triggers. Then it fills missing search vectors. `svc database upgrade` does the same for the triggers that it creates.",
  ],
  async run({ lockTimeout: patience }, io) {
    const url = await databaseUrl(io);
    const [{ withLock }, { syncAll }, { follow, triggerLines }] = await Promise.all([
      import("../../../drizzle/revision/lock.ts"),
      import("../../../drizzle/revision/upgrade.ts"),
      import("../../database/revisions.ts"),
    ]);
    const result = await follow(io, "", "", ({ notice }) => {
      const options = { url, purpose: "svc database sync-triggers", patience, notice };
      return withLock(options, (sql) => syncAll(sql, notice));
    });
    const lines = triggerLines(result);
    for (const line of lines) io.stdout.write(`${line}\n`);
    if (lines.length === 0) io.stdout.write("Nothing to do: all triggers are installed\n");
  },
});
