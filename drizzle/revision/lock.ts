import { hostname } from "node:os";
import { Conflict, Unavailable } from "../../platform/errors.ts";
import { refusePooler } from "../connection/database_address.ts";
import { openSql, type Sql } from "../connection/sql.ts";
import { operatorsError } from "../database_error.ts";

/** An arbitrary number that nothing else uses. `pg_locks` shows it, so an operator can see who holds the lock. */
export const lockKey = 7_798_563;
/** How long a command waits for another one, in seconds. */
const defaultPatience = 60;
const longestPauseMilliseconds = 250;

export interface LockOptions {
  url: string;
  /** The lock's holder as shown to others: `svc database upgrade`. */
  purpose: string;
  /** Seconds to wait for the lock. */
  patience?: number;
  /** Called once, when another session holds the lock. */
  notice?: (message: string) => void;
}

/**
 * Runs `work` on the connection that holds the schema change lock. The lock ends with the connection, even if this
 * process is killed.
 *
 * @throws Conflict naming the other holder after waiting too long; Unavailable when PostgreSQL refuses us, or is behind
 * a pooler
 */
export async function withLock<T>(options: LockOptions, work: (sql: Sql) => Promise<T>): Promise<T> {
  let lost = false;
  const sql = openSql(options.url, {
    max: 1,
    // If postgres.js renewed the connection, the new one would not hold the lock.
    max_lifetime: null,
    idle_timeout: undefined,
    connection: { application_name: nameOf(options.purpose) },
    onclose: () => {
      lost = true;
    },
  });
  try {
    // Behind a pooler, the lock and the settings would stay with a connection that another client uses next.
    await refusePooler(sql);
    await sql.unsafe(settings);
    await acquire(sql, options);
    return await work(guarded(sql, () => lost));
  } catch (error) {
    throw operatorsError(error);
  } finally {
    await sql.end({ timeout: 5 });
  }
}

/**
 * Overrides presets of the role and the database, and undoes what an earlier revision has left, such as a role or a
 * temporary table: a schema change neither waits forever nor times out, and works on the schema `public`. (PostgreSQL 15
 * and 16 have no transaction_timeout.) If this process is killed, its statement also ends, instead of holding locks and
 * taking effect later; PostgreSQL on Windows cannot detect that. `check --drift` compares definitions as text, so all
 * databases quote names alike. A statement that row-level security would limit to some rows fails instead: nothing may
 * take a table with hidden rows for an empty one.
 */
export const settings = `reset session authorization; reset role; discard temp; reset all;
set statement_timeout = 0; set idle_in_transaction_session_timeout = 0;
set idle_session_timeout = 0; set lock_timeout = '5s'; set search_path = public; set standard_conforming_strings = on;
set quote_all_identifiers = off; set row_security = off;
select set_config('transaction_timeout', '0', false) where pg_catalog.current_setting('transaction_timeout', true) is not null;
select set_config('client_connection_check_interval', '1s', false) where pg_catalog.version() !~* 'mingw|visual c|msvc';
`;

/** Polls, because a session that blocks in pg_advisory_lock deadlocks with the holder's CREATE INDEX CONCURRENTLY. */
async function acquire(
  sql: Sql,
  { patience = defaultPatience, notice }: Pick<LockOptions, "patience" | "notice">,
): Promise<void> {
  const deadline = performance.now() + patience * 1000;
  let told = false;
  for (let pause = 10; ; pause = Math.min(pause * 1.5, longestPauseMilliseconds)) {
    const [row] = await sql.unsafe(`select pg_try_advisory_lock(${lockKey}) as held`);
    if (row?.held) return;
    const left = deadline - performance.now();
    if (left <= 0) {
      throw new Conflict(
        `Another schema change has been running for over ${patience} s: ${await holder(sql)}`,
      );
    }
    if (!told && notice) {
      told = true;
      notice(`waiting for another schema change: ${await holder(sql)}`);
    }
    await Bun.sleep(Math.min(left, pause * (0.5 + Math.random())));
  }
}

/** Describes the lock's holder, so that a person can find it. */
async function holder(sql: Sql): Promise<string> {
  const [row] = await sql`
    select a.pid, host(a.client_addr) as address, a.application_name as name
    from pg_locks l join pg_stat_activity a using (pid)
    where l.locktype = 'advisory' and l.classid = 0 and l.objid = ${lockKey} and l.granted
      and l.database = (select oid from pg_database where datname = current_database())`;
  if (!row) return "it has just ended";
  return `${row.name || "unnamed"}, backend ${row.pid}${row.address ? ` from ${row.address}` : ""}`;
}

/** PostgreSQL truncates the name to 63 bytes. */
function nameOf(purpose: string): string {
  return `${purpose} (${hostname().slice(0, 24)}, process ${process.pid})`.slice(0, 63);
}

/** postgres.js would silently open another connection, which would not hold the lock. */
function guarded(sql: Sql, isLost: () => boolean): Sql {
  const refuse = () => {
    if (isLost()) throw new Unavailable("The connection that held the lock was lost: run it again");
  };
  return new Proxy(sql, {
    apply: (target, self, args) => {
      refuse();
      return Reflect.apply(target, self, args);
    },
    get: (target, name) => {
      if (name === "begin" || name === "unsafe") refuse();
      return Reflect.get(target, name);
    },
  });
}
