import { beforeAll, describe, expect, test } from "bun:test";
import { svc } from "../../../tests/support/cli/process.ts";
import {
  contentOf,
  createDatabaseOn,
  temporaryDirectory,
  using,
} from "../../../tests/support/database/backup.ts";
import { type DebianServer, debianServer } from "../../../tests/support/database/debian_postgres.ts";
import { slowTables } from "../../../tests/support/database/slow_tables.ts";
import { until } from "../../../tests/support/process/until.ts";

let debian: DebianServer;
beforeAll(async () => {
  debian = await debianServer();
});

const shadows = `create schema elsewhere; create table elsewhere.incident (nothing int);
  create table elsewhere.incident_type (nothing int); create table elsewhere.revision (nothing int);
  create view elsewhere.pg_class as select 1 as oid; create view elsewhere.pg_namespace as select 1 as oid`;

/** More than the first statements of a session take, to which it applies. */
const limitSeconds = 1;

const presets = {
  "an empty search_path, all names in quotes": [["search_path = ''", "quote_all_identifiers = on"], ""],
  "a search_path with other tables of these names": [
    ["search_path = elsewhere, public, pg_catalog"],
    shadows,
  ],
} as const;

/** The options of a connection that the settings do not affect. */
const own = "?options=-c%20search_path%3Dpublic%20-c%20statement_timeout%3D0";

/** A database with such settings. */
async function presetDatabase(settings: readonly string[], objects: string) {
  const [directory, database] = [await temporaryDirectory(), await createDatabaseOn(debian.url)];
  if (objects) await using(database.url, (sql) => sql.unsafe(objects));
  for (const setting of settings) {
    await using(debian.url, (sql) => sql.unsafe(`alter database ${database.name} set ${setting}`));
  }
  const run = async (...args: string[]) => {
    const environment = { SVC_DATABASE_URL: database.url, PATH: debian.tools };
    const { code, stdout, stderr } = await svc(["database", ...args], environment, directory.path);
    const known = stderr.replace(/^svc: the schema in the backup differs from .*\n/, "");
    expect({ args, code, stderr: known }).toEqual({ args, code: 0, stderr: "" });
    return stdout;
  };
  const dispose = async () => {
    await database[Symbol.asyncDispose]();
    await directory[Symbol.asyncDispose]();
  };
  return { url: database.url, run, [Symbol.asyncDispose]: dispose };
}

describe.each(Object.entries(presets))("with %s in the database's settings", (_what, [settings, objects]) => {
  test("the schema is created, inspected, backed up, restored and dropped", async () => {
    await using database = await presetDatabase(settings, objects);
    const { run, url } = database;
    await run("init");
    for (const command of ["upgrade", "populate", "sync-triggers"]) {
      expect(await run(command)).toContain("othing to do");
    }
    expect(await run("current")).toMatch(/^\d{8}T\d{4}_/);
    if (!objects) await run("check", "--drift");
    const ownUrl = Object.assign(new URL(url), { search: own }).href;
    await using(ownUrl, (sql) =>
      sql.unsafe(`insert into audit_log (at, actor, action, data)
        select now(), gen_random_uuid(), 'noise', '{}' from generate_series(1, 20000)`),
    );
    const before = await contentOf(ownUrl);
    await run("dump");
    await using(ownUrl, (sql) => sql`delete from audit_log`);
    await run("restore", "--yes");
    expect(await contentOf(ownUrl)).toEqual(before);
    await run("restore", "--example", "--yes");
    await run("drop", "--yes");
  });
});

test("a statement_timeout of the database interrupts no schema change, dump or restore", async () => {
  await using database = await presetDatabase([`statement_timeout = '${limitSeconds}s'`], "");
  const { run } = database;
  const ownUrl = database.url + own;
  {
    await using _ = await slowTables(ownUrl, 1.5 * limitSeconds);
    await run("init");
  }
  /** Keeps the command waiting for longer than the limit. */
  const runLate = async (...args: string[]) => {
    const { running } = await using(ownUrl, (holder) =>
      holder.begin(async (tx) => {
        await tx`lock table audit_log`;
        const running = run(...args);
        const isLate = async () => {
          const late = await using(
            ownUrl,
            (sql) => sql`select from pg_stat_activity where datname = current_database()
              and wait_event_type = 'Lock' and clock_timestamp() - query_start > ${`${1.5 * limitSeconds}s`}::interval`,
          );
          return late.length > 0;
        };
        await until("it to wait for longer than the limit", isLate);
        return { running };
      }),
    );
    await running;
  };
  await runLate("dump");
  await runLate("restore", "--yes");
});
