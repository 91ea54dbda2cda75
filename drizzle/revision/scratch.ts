import { Unavailable } from "../../platform/errors.ts";
import { openSql, type Sql } from "../connection/sql.ts";
import { errorCode } from "../database_error.ts";
import { quoted } from "../sql_text.ts";
import { setUp } from "./session.ts";

/**
 * Creates a temporary empty database on the same server as `url`, and drops it afterwards.
 * @throws Unavailable when the user may not create a database
 */
export async function withScratchDatabase<T>(
  url: string,
  purpose: string,
  use: (url: string) => Promise<T>,
): Promise<T> {
  // If postgres.js renewed the connection, the session's name would change.
  const sql = openSql(url, { max: 1, max_lifetime: null, idle_timeout: undefined });
  let name: string | undefined;
  try {
    await setUp(sql);
    await dropStale(sql);
    name = await nameOfSession(sql);
    await createScratch(sql, name, purpose);
    const target = new URL(url);
    target.pathname = `/${name}`;
    return await use(target.href);
  } finally {
    if (name) await sql.unsafe(`drop database if exists ${quoted(name)} with (force)`).catch(() => {});
    await sql.end({ timeout: 5 });
  }
}

/** The name of a session's database: its process id and start time (in ms, as PostgreSQL counts). */
const sessionName = "'svc_check_' || pid || '_' || floor(extract(epoch from backend_start) * 1000)::bigint";

async function nameOfSession(sql: Sql): Promise<string> {
  const [row] = await sql.unsafe<{ name: string }[]>(
    `select ${sessionName} as name from pg_stat_activity where pid = pg_backend_pid()`,
  );
  return row!.name;
}

/**
 * Drops databases that killed processes left behind: those of our role whose session has ended and that have no
 * connections.
 */
async function dropStale(sql: Sql): Promise<void> {
  const stale = await sql.unsafe<{ name: string }[]>(`
    select datname as name from pg_database
    where datname ~ '^svc_check_[0-9]+_[0-9]{13}$' and datdba = (select oid from pg_roles where rolname = current_user)
      and not exists (select from pg_stat_activity where datname = pg_database.datname or ${sessionName} = pg_database.datname)`);
  // Another process may be dropping it too, or someone may just have connected.
  for (const { name } of stale) await sql.unsafe(`drop database if exists ${quoted(name)}`).catch(() => {});
}

async function createScratch(sql: Sql, name: string, purpose: string): Promise<void> {
  try {
    await sql.unsafe(`create database ${quoted(name)} template template0`);
  } catch (error) {
    if (errorCode(error) !== "42501") throw error;
    throw new Unavailable(`${purpose} needs the right to create a database: alter role NAME createdb`, {
      cause: error,
    });
  }
}
