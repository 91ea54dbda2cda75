import { Unavailable } from "../../platform/errors.ts";
import { openSql, type Sql } from "../connection/sql.ts";
import { literal, quoted } from "../sql_text.ts";
import { setUp } from "./session.ts";

/** What a temporary database is for; its name says so. */
type Use = "check" | "restore";

/**
 * Creates a temporary empty database on the same server as `url`, with the encoding and collation of that database, and
 * drops it afterwards.
 *
 * @param purpose for a person: the command
 * @throws Unavailable when the user may not create a database
 */
export async function withScratchDatabase<T>(
  url: string,
  purpose: string,
  use: (url: string) => Promise<T>,
  kind: Use = "check",
): Promise<T> {
  // If postgres.js renewed the connection, the session's name would change.
  const sql = openSql(url, { max: 1, max_lifetime: null, idle_timeout: undefined });
  let name: string | undefined;
  try {
    await setUp(sql);
    await dropStale(sql);
    name = await createScratch(sql, kind, purpose);
    const target = new URL(url);
    target.pathname = `/${name}`;
    return await use(target.href);
  } finally {
    if (name) await sql.unsafe(`drop database if exists ${quoted(name)} with (force)`).catch(() => {});
    await sql.end({ timeout: 5 });
  }
}

/** Identifies a session: its process id and start time (in ms, as PostgreSQL counts). */
const session = "pid || '_' || floor(extract(epoch from backend_start) * 1000)::bigint";

/**
 * Drops databases that killed processes left behind: those of our role whose session has ended and that have no
 * connections.
 */
async function dropStale(sql: Sql): Promise<void> {
  const stale = await sql.unsafe<{ name: string }[]>(`
    select datname as name from pg_database
    where datname ~ '^svc_(check|restore)_[0-9]+_[0-9]{13}$'
      and datdba = (select oid from pg_roles where rolname = current_user)
      and not exists (select from pg_stat_activity
        where datname = pg_database.datname or ${session} = substring(pg_database.datname from '[0-9]+_[0-9]+$'))`);
  // Another process may be dropping it too, or someone may just have connected.
  for (const { name } of stale) await sql.unsafe(`drop database if exists ${quoted(name)}`).catch(() => {});
}

export async function mayCreateDatabase(sql: Sql): Promise<boolean> {
  const [row] = await sql`select rolcreatedb or rolsuper as yes from pg_roles where rolname = current_user`;
  return row?.yes === true;
}

async function createScratch(sql: Sql, kind: Use, purpose: string): Promise<string> {
  if (!(await mayCreateDatabase(sql)))
    throw new Unavailable(`${purpose} needs the right to create a database: alter role NAME createdb`);
  const [row] = await sql.unsafe(`
    select 'svc_${kind}_' || ${session} as name, d.datname as live, pg_encoding_to_char(encoding) as encoding,
      datcollate as collate, datctype as ctype, datlocprovider::text as provider,
      coalesce(to_jsonb(d) ->> 'datlocale', to_jsonb(d) ->> 'daticulocale') as locale
    from pg_stat_activity a, pg_database d where a.pid = pg_backend_pid() and d.datname = current_database()`);
  const { name, live, encoding, collate, ctype, provider, locale } = row!;
  const locales: Record<string, string> = {
    c: "libc",
    i: `icu icu_locale ${literal(String(locale))}`,
    b: `builtin builtin_locale ${literal(String(locale))}`,
  };
  await sql.unsafe(
    `create database ${quoted(name)} template template0 encoding ${literal(encoding)} locale_provider ${locales[provider]}
      lc_collate ${literal(collate)} lc_ctype ${literal(ctype)}`,
  );
  await sql.unsafe(`comment on database ${quoted(name)} is ${literal(`Temporary: ${purpose} of ${live}`)}`);
  return name;
}
