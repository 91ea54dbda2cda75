import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { aptInstall, ensure } from "./ensure.ts";

const root = "/usr/lib/postgresql";
/** The embedded one: a test of ours needs a server that is older. */
const newest = 18;

/** Where the server and the client tools of one version are, e.g. /usr/lib/postgresql/15/bin. */
export interface DebianPostgres {
  directory: string;
  major: number;
}

/** Debian's PostgreSQL, server and client tools, of a version before the embedded one; undefined without one. */
export function findDebianPostgres(): DebianPostgres | undefined {
  const majors = existsSync(root) ? readdirSync(root).map(Number) : [];
  const complete = majors
    .map((major) => ({ major, directory: join(root, String(major), "bin") }))
    .filter(({ major, directory }) => {
      const programs = ["initdb", "postgres", "pg_ctl", "pg_dump", "pg_restore"];
      return major < newest && programs.every((program) => existsSync(join(directory, program)));
    });
  return complete.sort((a, b) => b.major - a.major)[0];
}

// Whoever installs a database for a test wants no cluster that starts with the machine.
const install = [
  "mkdir -p /etc/postgresql-common",
  "[ -e /etc/postgresql-common/createcluster.conf ] || echo 'create_main_cluster = false' > /etc/postgresql-common/createcluster.conf",
  aptInstall("-o Dpkg::Options::=--force-confold postgresql"),
].join(" && ");

const why = `The tests of dump and restore need a PostgreSQL with its client tools in ${root}`;

export const missingDebianPostgres = `${why}. On Debian, as root: ${install}`;

/** Makes sure that it is there. @throws Error with the command */
export function ensureDebianPostgres(): void {
  ensure({ why, install, found: () => findDebianPostgres() !== undefined });
}
