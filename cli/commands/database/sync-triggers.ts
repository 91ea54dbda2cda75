import { defineCommand } from "../../command.ts";
import { databaseUrl } from "../../database_url.ts";
import { lockTimeout } from "../../lock_timeout.ts";

export default defineCommand({
  args: { lockTimeout },
  examples: ["svc database sync-triggers"],
  notes: [
    "Makes the triggers what their definition says (drizzle/triggers): missing and altered ones are made anew, stale ones of ours go, right ones are left alone. Then it looks through the search vectors and fills those that were missed. `svc database upgrade` does the same for the triggers that it had to make.",
  ],
  async run({ lockTimeout: patience }, io) {
    const url = await databaseUrl(io);
    const [{ withLock }, { syncAll }, { follow, triggerLines }] = await Promise.all([
      import("../../../drizzle/revision/lock.ts"),
      import("../../../drizzle/revision/upgrade.ts"),
      import("../../revisions.ts"),
    ]);
    const result = await follow(io, "", "", ({ notice }) => {
      const onWait = (holder: string) => notice(`waiting for another schema change: ${holder}`);
      const options = { url, purpose: "svc database sync-triggers", patience, onWait };
      return withLock(options, (sql) => syncAll(sql, notice));
    });
    const lines = triggerLines(result);
    for (const line of lines) io.stdout.write(`${line}\n`);
    if (lines.length === 0) io.stdout.write("Nothing to do: all triggers are as they should be\n");
  },
});
