import { hostname } from "node:os";
import { Conflict, Unavailable } from "../../platform/errors.ts";
import { refusePooler } from "../connection/database_address.ts";
import { openSql, type Sql } from "../connection/sql.ts";
import { operatorsError } from "../database_error.ts";

/** Any number that no one else uses: `pg_locks` shows it, so an operator can see who holds it. */
export const lockKey = 7_798_563;
/** How long a command waits for another one, seconds. */
const defaultPatience = 60;
const longestPauseMilliseconds = 250;

export interface LockOptions<T = unknown> {
  url: string;
  /** What holds the lock, as others are told: `svc database upgrade`. */
  purpose: string;
  /** Seconds to wait for it. */
  patience?: number;
  /** Told once, when somebody else has it. */
  onWait?: (holder: string) => void;
  /** Asked first, without the lock: what it finds is the result, and `work` is not needed. */
  unless?: (sql: Sql) => Promise<T | undefined>;
}

/**
 * Runs `work` on the one connection that holds the lock of schema changes; with the connection the lock is gone too,
 * also when this process is killed.
 *
 * @throws Conflict when somebody else holds it for too long, by name; Unavailable when PostgreSQL refuses us, or is behind
 * a pooler
 */
export async function withLock<T>(options: LockOptions<T>, work: (sql: Sql) => Promise<T>): Promise<T> {
  let lost = false;
  let changed = false;
  const sql = openSql(options.url, {
    max: 1,
    // A connection that postgres.js would renew by itself is one without the lock.
    max_lifetime: null,
    idle_timeout: undefined,
    fetch_types: false,
    connection: { application_name: nameOf(options.purpose) },
    onclose: () => {
      lost = true;
    },
  });
  try {
    // Behind a pooler the lock, and the settings, would stay with a connection that is somebody else's next.
    await refusePooler(sql);
    await sql.unsafe(settings);
    const found = await options.unless?.(sql);
    if (found !== undefined) return found;
    changed = true;
    await acquire(sql, options);
    return await work(guarded(sql, () => lost));
  } catch (error) {
    throw operatorsError(error);
  } finally {
    // Not waited for when nothing was done: the answer is there.
    const ended = sql.end({ timeout: 5 });
    if (changed) await ended;
  }
}

/**
 * Whatever the role or the database presets, and whatever a revision before has set: a change waits neither for ever nor
 * is it cut short, and is about the schema `public`. (PostgreSQL 15 and 16 have no transaction_timeout.) What a killed
 * process had begun ends too, instead of keeping its locks and being done behind somebody's back; on Windows PostgreSQL
 * cannot look.
 */
export const settings = `reset all; set statement_timeout = 0; set idle_in_transaction_session_timeout = 0;
set idle_session_timeout = 0; set lock_timeout = '5s'; set search_path = public; set standard_conforming_strings = on;
select set_config(name, '0', false) from pg_catalog.pg_settings where name = 'transaction_timeout';
select set_config('client_connection_check_interval', '1s', false) where pg_catalog.version() !~* 'mingw|visual c|msvc';
`;

/** Polls: a session that blocks in pg_advisory_lock deadlocks with CREATE INDEX CONCURRENTLY of the holder. */
async function acquire(
  sql: Sql,
  { patience = defaultPatience, onWait }: Pick<LockOptions, "patience" | "onWait">,
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
    if (!told && onWait) {
      told = true;
      onWait(await holder(sql));
    }
    await Bun.sleep(Math.min(left, pause * (0.5 + Math.random())));
  }
}

/** Who holds the lock, for a person who wants to look for it. */
async function holder(sql: Sql): Promise<string> {
  const [row] = await sql`
    select a.pid, host(a.client_addr) as address, a.application_name as name
    from pg_locks l join pg_stat_activity a using (pid)
    where l.locktype = 'advisory' and l.classid = 0 and l.objid = ${lockKey} and l.granted
      and l.database = (select oid from pg_database where datname = current_database())`;
  if (!row) return "it has just ended";
  return `${row.name || "unnamed"}, backend ${row.pid}${row.address ? ` from ${row.address}` : ""}`;
}

/** PostgreSQL cuts the name after 63 bytes. */
function nameOf(purpose: string): string {
  return `${purpose} (${hostname().slice(0, 24)}, process ${process.pid})`.slice(0, 63);
}

/** postgres.js would open another connection without a word; that one has no lock. */
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
