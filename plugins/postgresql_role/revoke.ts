import type { LeaseFacts } from "../../core/plugin.ts";
import { Refused, Unavailable } from "../../platform/errors.ts";
import {
  clusterOf,
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
  versionOf,
} from "./target.ts";

const heirComment = "svc: owner of what leases left behind, without privileges";
/** How long to wait for a role's sessions to end before the attempt fails. */
const terminateSeconds = 5;
/** How long to wait for a lock that a session of the role may hold before terminating its sessions again. */
const ownLockMilliseconds = 250;
const pollMilliseconds = 20;
/** In bytes. PostgreSQL truncates longer names. */
const longestName = 63;

/**
 * Removes a role in six idempotent steps:
 *
 * 1. Forbid new logins, and commit.
 * 2. Terminate its sessions, and roll back its prepared transactions.
 * 3. Grant the role to the broker, so that the broker can act for it.
 * 4. Remove its objects and grants in every database.
 * 5. Drop it.
 * 6. Verify that it is gone.
 */
export async function revoke({
  name,
  role,
  handle,
  expiresAt,
  signal,
}: LeaseFacts & { handle?: string; expiresAt: string; signal: AbortSignal }): Promise<void> {
  const target = targetOf(role);
  await connected(target, signal, async (sql) => {
    // Take the lock only if the role may not exist yet. Users know their role's name and could hold the lock, so
    // an existing role must not wait for it.
    const exists =
      (await isOurs(sql, role, name)) ||
      (await inTransaction(sql, async (tx) => {
        await lockName(tx, name);
        return await isOurs(tx, role, name);
      }));
    if (!exists) {
      // The role's settings may name another server since. At the old one, the lease can log in until it expires.
      const isElsewhere = handle !== undefined && handle !== (await clusterOf(sql));
      if (isElsewhere && new Date(expiresAt) > new Date())
        throw new Unavailable(
          `${name} was created at another PostgreSQL than ${target.host}:${target.port}: set its address again until the lease is revoked, or wait until it expires`,
        );
      const [server] = await sql<[{ replica: boolean }]>`select pg_is_in_recovery() as replica`;
      if (handle !== undefined && server.replica)
        throw new Unavailable(
          `PostgreSQL at ${target.host}:${target.port} is a replica, which may not have the role yet: set host to its primary`,
        );
      return;
    }
    const endWork = async () => {
      await endSessions(sql, name, signal);
      await rollBackPrepared(sql, target, name, signal);
    };
    await forbidLogin(sql, name, endWork);
    await endWork();
    // pg_shdepend is shared: it lists what the role owns or was granted in every database.
    const [{ databases }] = await sql<[{ databases: string[] }]>`
      select to_json(array(
        select distinct d.datname::text from pg_shdepend s join pg_roles r on r.oid = s.refobjid
        join pg_database d on d.oid = s.dbid or (s.dbid = 0 and d.datname = current_database())
        where s.refclassid = 'pg_authid'::regclass and r.rolname = ${name})) as databases`;
    await grantToBroker(sql, target, name);
    const heir = databases.length === 0 ? "" : await heirOf(sql, target);
    const clear = (there: Sql) => giveUpObjects(there, name, heir);
    for (const database of databases)
      await (database === target.database ? clear(sql) : connected(target, signal, clear, database));
    await endSessions(sql, name, signal);
    await dropRole(sql, name);
    if (await isOurs(sql, role, name)) throw new Unavailable(`The role ${name} still exists after DROP ROLE`);
  });
}

/** @throws Unavailable when the role has privileges that only a superuser can revoke */
async function dropRole(sql: Sql, name: string): Promise<void> {
  try {
    await sql.unsafe(`drop role if exists ${identifier(name)}`);
  } catch (error) {
    // dependent_objects_still_exist: the broker cannot revoke privileges that an object's owner granted to this role.
    if (codeOf(error) !== "2BP01") throw error;
    const places = await sql<{ name: string }[]>`
      select distinct coalesce(d.datname, current_database()) as name from pg_shdepend s
      join pg_roles r on r.oid = s.refobjid left join pg_database d on d.oid = s.dbid
      where s.refclassid = 'pg_authid'::regclass and r.rolname = ${name} order by 1`;
    throw new Unavailable(
      `The role has privileges that the broker cannot revoke: as a superuser, run in ${places.map((one) => one.name).join(", ")}: drop owned by ${identifier(name)};`,
      { cause: error },
    );
  }
}

/** Lets the broker act for the role. */
async function grantToBroker(sql: Sql, { user }: Target, name: string): Promise<void> {
  const options = (await versionOf(sql)) >= 160_000 ? " with inherit true, set true" : "";
  await sql.unsafe(`grant ${identifier(name)} to ${identifier(user)}${options}`);
}

/**
 * Removes LOGIN. A transaction of the role may hold a lock on its row, such as after `ALTER ROLE ... PASSWORD`. So this
 * ends the role's work and retries until the change succeeds.
 */
async function forbidLogin(sql: Sql, name: string, endWork: () => Promise<void>): Promise<void> {
  const deadline = performance.now() + terminateSeconds * 1000;
  for (;;) {
    try {
      // Statements sent together run in one transaction.
      await sql.unsafe(
        `set local lock_timeout = ${ownLockMilliseconds}; alter role ${identifier(name)} nologin`,
      );
      return;
    } catch (error) {
      // 55P03: lock_not_available. XX000: "tuple concurrently updated".
      if (!["55P03", "XX000"].includes(codeOf(error)) || performance.now() > deadline) throw error;
    }
    await endWork();
  }
}

/**
 * Rolls back the role's prepared transactions, which outlive its sessions and keep their locks. Only the role itself can
 * do so, in the same database.
 */
async function rollBackPrepared(sql: Sql, target: Target, name: string, signal: AbortSignal): Promise<void> {
  const prepared = await sql<{ gid: string; database: string }[]>`
    select gid, database from pg_prepared_xacts where owner = ${name}`;
  if (prepared.length > 0) await grantToBroker(sql, target, name);
  for (const { gid, database } of prepared)
    await connected(
      target,
      signal,
      async (there) => {
        await there.unsafe(`set role ${identifier(name)}`);
        await there.unsafe(`rollback prepared ${literal(gid)}`).catch((error) => {
          // undefined_object: it has already ended.
          if (codeOf(error) !== "42704") throw error;
        });
      },
      database,
    );
}

/** Terminates the role's sessions, which would survive NOLOGIN and even DROP ROLE. @throws Unavailable */
async function endSessions(sql: Sql, name: string, signal: AbortSignal): Promise<void> {
  const deadline = performance.now() + terminateSeconds * 1000;
  for (;;) {
    const alive = await sql`
      select pg_terminate_backend(pid) from pg_stat_activity where usename = ${name}`;
    if (alive.length === 0) return;
    if (performance.now() > deadline)
      throw new Unavailable(`Sessions of ${name} that do not end at the target: ${alive.length}`);
    signal.throwIfAborted();
    await Bun.sleep(pollMilliseconds);
  }
}

/**
 * The role that gets the objects of ended leases. Each broker has one, created on first use.
 *
 * @throws Refused when a role of this name exists that svc did not create
 */
async function heirOf(sql: Sql, target: Target): Promise<string> {
  const suffix = "_leftovers";
  const start = Buffer.from(target.user).subarray(0, longestName - suffix.length);
  const heir = `${start.toString().replace(/\ufffd$/, "")}${suffix}`;
  const find = async (there: Sql) => {
    const [found] = await there<{ comment: string | null }[]>`
      select shobj_description(oid, 'pg_authid') as comment from pg_roles where rolname = ${heir}`;
    if (found && found.comment !== heirComment)
      throw new Refused(`The target has a role ${heir} that svc did not create: rename that role`);
    return found !== undefined;
  };
  if (await find(sql)) return heir;
  try {
    await inTransaction(sql, async (tx) => {
      await tx.unsafe(`create role ${identifier(heir)} nologin noinherit`);
      await tx.unsafe(`comment on role ${identifier(heir)} is ${literal(heirComment)}`);
      await grantToBroker(tx, target, heir);
    });
  } catch (error) {
    // No lock, because users could hold it. If a concurrent revocation created the role, use that.
    const isTaken = ["42710", "23505"].includes(codeOf(error));
    if (!isTaken || !(await find(sql))) throw error;
  }
  return heir;
}

/**
 * Reassigns the role's objects in this database to the heir, and drops its grants. Drops the objects that the heir cannot
 * own, which contain no data.
 */
async function giveUpObjects(sql: Sql, name: string, heir: string): Promise<void> {
  // Sent together, so that they run in one transaction.
  const giveUp = `reassign owned by ${identifier(name)} to ${identifier(heir)}; drop owned by ${identifier(name)}`;
  try {
    await sql.unsafe(giveUp);
  } catch (error) {
    if (codeOf(error) !== "42501") throw error;
    // The new owner of these objects needs further privileges, such as CREATE on their schema.
    const dropBound = `declare one record; object record; begin
        for one in select classid, objid from pg_shdepend
          where dbid = (select oid from pg_database where datname = current_database())
            and refclassid = 'pg_authid'::regclass and deptype = 'o'
            and refobjid = (select oid from pg_roles where rolname = ${literal(name)})
            and classid::regclass::text in ('pg_proc', 'pg_operator', 'pg_collation', 'pg_conversion',
              'pg_statistic_ext', 'pg_ts_config', 'pg_ts_dict', 'pg_opclass', 'pg_opfamily', 'pg_publication',
              'pg_foreign_server')
        loop
          select type, identity into object from pg_identify_object(one.classid, one.objid, 0);
          -- CASCADE may have dropped it already.
          if object.identity is not null then
            execute format('drop %s %s cascade', replace(object.type, ' object', ''), object.identity);
          end if;
        end loop;
      end`;
    try {
      await sql.unsafe(`do ${literal(dropBound)}; ${giveUp}`);
    } catch (cause) {
      if (codeOf(cause) !== "42501") throw cause;
      // Such as a schema, after CREATE on the database was revoked. It may contain data, so it is not dropped.
      const [{ database }] = await sql<[{ database: string }]>`select current_database() as database`;
      throw new Unavailable(
        `The role owns objects that the broker cannot reassign: as a superuser, run in ${database}: reassign owned by ${identifier(name)} to ${identifier(heir)};`,
        { cause },
      );
    }
  }
}
