import { afterAll, beforeAll } from "bun:test";
import type { DumpOptions } from "../../../drizzle/backup/dump.ts";
import type { RestoreOptions } from "../../../drizzle/backup/restore.ts";
import { upgrade } from "../../../drizzle/revision/upgrade.ts";
import { TestClock } from "../clock.ts";
import { createDatabaseOn, hostileRevisions, insertHostileRows } from "./backup.ts";
import { type DebianServer, startDebianPostgres } from "./debian_postgres.ts";

/** Starts Debian's PostgreSQL for a whole file, for backups with the tools of that server. */
export function useDebianBackups() {
  let debian: DebianServer;
  beforeAll(async () => {
    debian = await startDebianPostgres();
  });
  afterAll(() => debian.stop());
  return {
    get debian() {
      return debian;
    },
    /** Of dump and restore, without a question. Finds only the tools of this server, whatever else the machine has. */
    options: (url: string, path: string, more: Partial<DumpOptions & RestoreOptions> = {}) => ({
      env: { PATH: debian.tools },
      tools: () => [],
      release: "1",
      clock: new TestClock(),
      revisions: hostileRevisions,
      confirm: async () => {},
      url,
      path,
      ...more,
    }),
    /** A database at the head of the hostile revisions, with rows. */
    async liveDatabase(settings = "") {
      const database = await createDatabaseOn(debian.url, settings);
      await upgrade({ url: database.url, revisions: hostileRevisions });
      await insertHostileRows(database.url);
      return database;
    },
  };
}
