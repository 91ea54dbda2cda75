import { beforeAll } from "bun:test";
import type { DumpOptions } from "../../../drizzle/backup/dump.ts";
import type { RestoreOptions } from "../../../drizzle/backup/restore.ts";
import { TestClock } from "../clock.ts";
import { createHostile, hostileRevisions } from "./backup.ts";
import { type DebianServer, debianServer } from "./debian_postgres.ts";

/** Debian's PostgreSQL, for backups. */
export function useDebianBackups() {
  let debian: DebianServer;
  beforeAll(async () => {
    debian = await debianServer();
  });
  return {
    get debian() {
      return debian;
    },
    /** Of dump and restore, without a question. */
    options: (url: string, path: string, more: Partial<DumpOptions & RestoreOptions> = {}) => ({
      release: "1",
      clock: new TestClock(),
      revisions: hostileRevisions,
      confirm: async () => {},
      url,
      path,
      ...more,
    }),
    liveDatabase: () => createHostile(debian.url),
  };
}
