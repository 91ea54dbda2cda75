import type { LeaseFacts } from "../../core/plugin.ts";
import { Refused, Unavailable } from "../../platform/errors.ts";
import {
  codeOf,
  connected,
  identifier,
  inTransaction,
  isOurs,
  literal,
  lockName,
  type Sql,
  type Target,
  targetOf,
} from "./target.ts";

const heirComment = "svc: owner of what leases left behind, without privileges";
/** How long a role's sessions may take to end before the attempt fails. */
const terminateSeconds = 5;
/** How long to wait for a lock that a session of the role may hold, before terminating its sessions again. */
const ownLockMilliseconds = 250;
const pollMilliseconds = 20;
/** Bytes; PostgreSQL truncates longer names. */
const longestName = 63;

/**
 * Ends a role in six steps, each of which may have been done before: no new logins, committed; sessions terminated; the
 * role granted to the broker, so that it may act for it; nothing owned or granted in any database; dropped; verified.
 */
export async function revoke({ name, role, signal }: LeaseFacts & { signal: AbortSignal }): Promise<void> {
  const target = targetOf(role);
  await connected(target, signal, async (sql) => {
    // The lock is only for a role that is still being created. Users know their role's name and could hold the lock, so a
    // role that exists must not wait for it.
    const exists =
      (await isOurs(sql, role, name)) ||
      (await inTransaction(sql, async (tx) => {
        await lockName(tx, name);
        return await isOurs(tx, role, name);
      }));
    if (!exists) return;
    await forbidLogin(sql, name, signal);
    await endSessions(sql, name, signal);
    // This catalog is shared: it lists what the role owns or was granted in every database.
    const [{ version, databases }] = await sql<[{ version: number; databases: string[] }]>`
      select current_setting('server_version_num')::int as version, to_json(array(
        select distinct d.datname::text from pg_shdepend s join pg_roles r on r.oid = s.refobjid
        join pg_database d on d.oid = s.dbid or (s.dbid = 0 and d.datname = current_database())
        where s.refclassid = 'pg_authid'::regclass and r.rolname = ${name})) as databases`;
    const options = version >= 160_000 ? " with inherit true, set true" : "";
    await sql.unsafe(`grant ${identifier(name)} to ${identifier(target.user)}${options}`);
    const heir = databases.length === 0 ? "" : await heirOf(sql, target, version);
    const clear = (there: Sql) => giveUpObjects(there, name, heir);
    for (const database of databases)
      await (database === target.database ? clear(sql) : connected(target, signal, clear, database));
    await endSessions(sql, name, signal);
    await dropRole(sql, name);
    if (await isOurs(sql, role, name)) throw new Unavailable(`The role ${name} still exists after DROP ROLE`);
  });
}

/** @throws Unavailable when something keeps the role that only a superuser can remove */
async function dropRole(sql: Sql, name: string): Promise<void> {
  try {
    await sql.unsafe(`drop role if exists ${identifier(name)}`);
  } catch (error) {
    // dependent_objects_still_exist: the broker cannot revoke what the owner of an object granted to this role directly.
    if (codeOf(error) !== "2BP01") throw error;
    const places = await sql<{ name: string }[]>`
      select distinct coalesce(d.datname, 'all databases') as name from pg_shdepend s
      join pg_roles r on r.oid = s.refobjid left join pg_database d on d.oid = s.dbid
      where s.refclassid = 'pg_authid'::regclass and r.rolname = ${name} order by 1`;
    throw new Unavailable(
      `The role has rights that the broker cannot revoke. As a superuser, in ${places.map((one) => one.name).join(", ")}: drop owned by ${identifier(name)};`,
      { cause: error },
    );
  }
}

/**
 * Takes away LOGIN. A session of the role may hold a lock on its own row, as after `ALTER ROLE ... PASSWORD` in an open
 * transaction, so sessions are terminated until the change succeeds.
 */
async function forbidLogin(sql: Sql, name: string, signal: AbortSignal): Promise<void> {
  const deadline = performance.now() + terminateSeconds * 1000;
  for (;;) {
    try {
      // Statements sent together are one transaction.
      await sql.unsafe(
        `set local lock_timeout = ${ownLockMilliseconds}; alter role ${identifier(name)} nologin`,
      );
      return;
    } catch (error) {
      // 55P03: lock_not_available. XX000: "tuple concurrently updated".
      if (!["55P03", "XX000"].includes(codeOf(error)) || performance.now() > deadline) throw error;
    }
    await endSessions(sql, name, signal);
  }
}

/** Terminates the role's sessions: they survive NOLOGIN, and even DROP ROLE. @throws Unavailable */
async function endSessions(sql: Sql, name: string, signal: AbortSignal): Promise<void> {
  const deadline = performance.now() + terminateSeconds * 1000;
  for (;;) {
    const alive = await sql`
      select pg_terminate_backend(pid) from pg_stat_activity where usename = ${name}`;
    if (alive.length === 0) return;
    if (performance.now() > deadline)
      throw new Unavailable(`${alive.length} sessions of ${name} do not end at the target`);
    signal.throwIfAborted();
    await Bun.sleep(pollMilliseconds);
  }
}

/**
 * The role that gets what leases own when they end: one for each broker, created when it is first needed.
 *
 * @throws Refused when somebody else's role has its name
 */
async function heirOf(sql: Sql, { user }: Target, version: number): Promise<string> {
  const suffix = "_leftovers";
  const start = Buffer.from(user).subarray(0, longestName - suffix.length);
  const heir = `${start.toString().replace(/\ufffd$/, "")}${suffix}`;
  const find = async (there: Sql) => {
    const [found] = await there<{ comment: string | null }[]>`
      select shobj_description(oid, 'pg_authid') as comment from pg_roles where rolname = ${heir}`;
    if (found && found.comment !== heirComment)
      throw new Refused(`The target has a role ${heir} that svc did not create: rename it`);
    return found !== undefined;
  };
  if (await find(sql)) return heir;
  const options = version >= 160_000 ? " with inherit true, set true" : "";
  try {
    // Sent together, so that they are one transaction.
    await sql.unsafe(
      `create role ${identifier(heir)} nologin noinherit;
       comment on role ${identifier(heir)} is ${literal(heirComment)};
       grant ${identifier(heir)} to ${identifier(user)}${options}`,
    );
  } catch (error) {
    // No lock, because users could hold it: of two revocations, one finds what the other has created.
    const isTaken = ["42710", "23505"].includes(codeOf(error));
    if (!isTaken || !(await find(sql))) throw error;
  }
  return heir;
}

/**
 * Gives what the role owns in this database to the heir, and drops its grants. PostgreSQL refuses a new owner who may not
 * create in the schema of a routine: routines are then dropped.
 */
async function giveUpObjects(sql: Sql, name: string, heir: string): Promise<void> {
  // Sent together, so that they are one transaction.
  const giveUp = `reassign owned by ${identifier(name)} to ${identifier(heir)}; drop owned by ${identifier(name)}`;
  try {
    await sql.unsafe(giveUp);
  } catch (error) {
    if (codeOf(error) !== "42501") throw error;
    const dropRoutines = `declare one record; begin
        for one in select oid from pg_proc
          where proowner = (select oid from pg_roles where rolname = ${literal(name)})
        loop
          -- CASCADE may have dropped it already.
          if exists (select from pg_proc where oid = one.oid) then
            execute format('drop routine %s cascade', one.oid::regprocedure);
          end if;
        end loop;
      end`;
    await sql.unsafe(`do ${literal(dropRoutines)}; ${giveUp}`);
  }
}
