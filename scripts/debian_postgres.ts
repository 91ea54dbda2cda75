import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { aptInstall, ensure } from "./ensure.ts";

const root = "/usr/lib/postgresql";
/** The embedded version: one test needs an older server. */
const newest = 18;

/** The folder of the server and client tools of one version, e.g. /usr/lib/postgresql/15/bin. */
interface DebianPostgres {
  directory: string;
  major: number;
}

/** Debian's PostgreSQL, if its server and client tools are older than the embedded version. */
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

// Installing the packages must not create a cluster that starts with the machine.
const install = [
  "mkdir -p /etc/postgresql-common",
  "[ -e /etc/postgresql-common/createcluster.conf ] || echo 'create_main_cluster = false' > /etc/postgresql-common/createcluster.conf",
  aptInstall("-o Dpkg::Options::=--force-confold postgresql"),
].join(" && ");

const why = `The tests of dump and restore need a PostgreSQL with its client tools in ${root}`;

export const missingDebianPostgres = `${why}. On Debian, as root: ${install}`;

/** Ensures that it is installed. @throws Error with the command */
export function ensureDebianPostgres(): void {
  ensure({ why, install, found: () => findDebianPostgres() !== undefined });
}
