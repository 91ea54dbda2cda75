import type { LeaseFacts } from "../../core/plugin.ts";
import { Refused, SvcError, Unavailable } from "../../platform/errors.ts";
import { listLeft } from "./left.ts";
import { clearDatabase, explainDatabase, heirNameOf, heirOf, type Remaining } from "./objects.ts";
import {
  clusterOf,
  codeOf,
  connected,
  findRole,
  grantToBroker,
  identifier,
  inTransaction,
  literal,
  lockName,
  type Role,
  readHandle,
  type Sql,
  type Target,
  targetOf,
} from "./target.ts";

/** How long to wait for a role's sessions to end before the attempt fails. */
const terminateSeconds = 5;
/** How long to wait for a lock before finding out who holds it. */
const ownLockMilliseconds = 250;
const pollMilliseconds = 20;
const mostLines = 100;

/** What all steps of a revocation need. */
interface Work {
  sql: Sql;
  target: Target;
  role: Role;
  signal: AbortSignal;
}

/**
 * Removes a role in idempotent steps, and returns what may outlive it:
 *
 * 1. Forbid new logins, and commit.
 * 2. Terminate its sessions, and roll back its prepared transactions.
 * 3. Revoke its memberships.
 * 4. Grant the role to the broker, so that the broker can act for it.
 * 5. Give up its objects and privileges in every database.
 * 6. Drop it.
 * 7. Verify that it is gone.
 *
 * @throws Refused when a person has to decide about something that others use. The first three steps are then done.
 */
export async function revoke({
  role: facts,
  expiresAt,
  signal,
  ...lease
}: LeaseFacts & { handle?: string; expiresAt: string; signal: AbortSignal }): Promise<
  | {
      left: string[];
    }
  | undefined
> {
  const target = targetOf(facts);
  return await connected(target, signal, async (sql) => {
    const find = (there: Sql) => findRole(there, facts, lease);
    // Take the lock only if the role may not exist yet. Users know their role's name and could hold the lock, so
    // an existing role must not wait for it.
    const role =
      (await find(sql)) ??
      (await inTransaction(sql, async (tx) => {
        await lockName(tx, lease.name);
        return await find(tx);
      }));
    if (!role) {
      await checkPlace(sql, target, { ...lease, expiresAt });
      return undefined;
    }
    const work = { sql, target, role, signal };
    await forbidLogin(work);
    await endWork(work);
    await leaveParents(work);
    await grantToBroker(sql, target, role.name);
    const remaining = await clear(work);
    if (remaining.length > 0) throw undecided(role, remaining);
    await endSessions(work);
    await dropRole(work);
    if (await find(sql)) throw new Unavailable(`The role ${role.name} still exists after DROP ROLE`);
    return { left: await listLeft(sql, target, lease.handle, signal).catch(() => []) };
  });
}

/** Describes what `revoke` would do with what the role has, and changes nothing. */
export async function explain({
  role: facts,
  signal,
  ...lease
}: LeaseFacts & { handle?: string; signal: AbortSignal }): Promise<string[]> {
  const target = targetOf(facts);
  return await connected(target, signal, async (sql) => {
    const role = await findRole(sql, facts, lease);
    if (!role) return [];
    const lines: string[] = [];
    for (const name of await databasesOf(sql, role)) {
      const work = (there: Sql) => explainDatabase(there, role, heirNameOf(target));
      try {
        lines.push(
          ...(name === target.database ? await work(sql) : await connected(target, signal, work, name)),
        );
      } catch (error) {
        if (name === target.database || !(error instanceof SvcError)) throw error;
        lines.push(`${name}: ${error.detail}`);
      }
    }
    return lines.length > mostLines ? [...lines.slice(0, mostLines - 1), "and more"] : lines;
  });
}

/** @throws Unavailable when the role may exist at another server than the one that does not have it */
async function checkPlace(
  sql: Sql,
  { host, port }: Target,
  { name, handle, expiresAt }: { name: string; handle?: string; expiresAt: string },
): Promise<void> {
  // The role's settings may name another server since. At the old one, the lease can log in until it expires.
  const isElsewhere = handle !== undefined && readHandle(handle).cluster !== (await clusterOf(sql));
  if (isElsewhere && new Date(expiresAt) > new Date())
    throw new Unavailable(
      `${name} was created at another PostgreSQL than ${host}:${port}: set its address again until the lease is revoked, or wait until it expires`,
    );
  const [server] = await sql<[{ replica: boolean }]>`select pg_is_in_recovery() as replica`;
  if (handle !== undefined && server.replica)
    throw new Unavailable(
      `PostgreSQL at ${host}:${port} is a replica, which may not have the role yet: set host to its primary`,
    );
}

/** Ends what the role is doing. */
async function endWork(work: Work): Promise<void> {
  await endSessions(work);
  const own = await work.sql<Prepared[]>`
    select gid, owner, database from pg_prepared_xacts where owner = ${work.role.name}`;
  for (const one of own) await rollBack(work, one);
}

/**
 * Removes LOGIN. A transaction of the role may hold its row, such as after `ALTER ROLE ... PASSWORD`. So this ends the
 * role's work and retries until the change succeeds.
 */
async function forbidLogin(work: Work): Promise<void> {
  await withoutHolders(work, `alter role ${identifier(work.role.name)} nologin`);
}

/**
 * Runs a statement that needs the role itself. While another transaction holds its row or its lock, this ends the role's
 * work, and rolls back the prepared transaction that holds it. That one may have another owner: PREPARE TRANSACTION
 * records the current role, which SET ROLE changes.
 *
 * @throws Refused when the broker may not roll back the prepared transaction
 */
async function withoutHolders(work: Work, statement: string): Promise<void> {
  const { sql, target, role, signal } = work;
  const deadline = performance.now() + terminateSeconds * 1000;
  const attempt = async () => {
    try {
      // Statements sent together run in one transaction.
      await sql.unsafe(`set local lock_timeout = ${ownLockMilliseconds}; ${statement}`);
      return true;
    } catch (error) {
      // 55P03: lock_not_available. XX000: "tuple concurrently updated".
      if (!["55P03", "XX000"].includes(codeOf(error))) throw error;
      return false;
    }
  };
  while (!(await attempt())) {
    await endWork(work);
    const [{ pid }] = await sql<[{ pid: number }]>`select pg_backend_pid() as pid`;
    const again = attempt();
    const [holders, isDone] = await connected(target, signal, (other) =>
      Promise.all([holdersOf(other, pid, again), again]),
    );
    if (isDone) return;
    for (const holder of holders) if (holder.gid !== null) await rollBack(work, holder as Prepared);
    if (performance.now() < deadline) continue;
    const who = holders.map(({ owner, pid: session }) => `the session ${session} of ${owner}`);
    throw new Unavailable(
      `${role.name} is locked at the target${who.length > 0 ? ` by ${who.join(", ")}` : ""}`,
    );
  }
}

interface Prepared {
  gid: string;
  owner: string;
  database: string;
}

/**
 * Who holds what a session waits for, while it waits. A prepared transaction has a gid, and no session. If others wait for
 * the same row, the first of them has locked the tuple, and waits for the one that holds the row.
 */
async function holdersOf(sql: Sql, pid: number, waiting: Promise<unknown>) {
  let isWaiting = true;
  const over = () => {
    isWaiting = false;
  };
  waiting.then(over, over);
  while (isWaiting) {
    const holders = await sql<(Omit<Prepared, "gid"> & { gid: string | null; pid: number | null })[]>`
      with first as (
        select h.pid from pg_locks w join pg_locks h on h.granted and h.locktype = 'tuple'
          and (h.database, h.relation, h.page, h.tuple) = (w.database, w.relation, w.page, w.tuple)
        where w.pid = ${pid} and w.locktype = 'tuple' and not w.granted)
      select distinct p.gid, coalesce(p.owner, a.usename) as owner, coalesce(p.database, a.datname) as database, h.pid
      from pg_locks w join pg_locks h on h.granted and h.pid is distinct from w.pid
        and (h.locktype, h.database, h.relation, h.tuple, h.page, h.transactionid, h.classid, h.objid)
        is not distinct from (w.locktype, w.database, w.relation, w.tuple, w.page, w.transactionid, w.classid, w.objid)
      -- The lock that each transaction has on its own xid.
      left join pg_locks x on h.pid is null and x.pid is null and x.locktype = 'transactionid' and x.granted
        and x.virtualtransaction = h.virtualtransaction
      left join pg_prepared_xacts p on p.transaction = x.transactionid
      left join pg_stat_activity a on a.pid = h.pid
      where not w.granted and (w.pid = ${pid} and w.locktype in ('transactionid', 'tuple', 'object')
        or w.pid in (select pid from first) and w.locktype = 'transactionid')`;
    if (holders.length > 0) return holders;
    await Bun.sleep(pollMilliseconds);
  }
  return [];
}

/** Rolls back a prepared transaction as its owner, which is possible only in its own database. */
async function rollBack(
  { sql, target, role, signal }: Work,
  { gid, owner, database }: Prepared,
): Promise<void> {
  const command = `rollback prepared ${literal(gid)}`;
  if (owner === role.name) await grantToBroker(sql, target, role.name);
  const work = async (there: Sql) => {
    await there.unsafe(`set role ${identifier(owner)}`);
    await there.unsafe(command).catch((error) => {
      // undefined_object: it has already ended.
      if (codeOf(error) !== "42704") throw error;
    });
  };
  try {
    await connected(target, signal, work, database);
  } catch (cause) {
    const { cause: reason } = cause as Error;
    if (codeOf(reason) !== "42501") throw cause;
    throw new Refused(
      `The prepared transaction ${literal(gid)} of ${owner} holds the role ${role.name}: as a superuser, run in ${database}: ${command};`,
      { cause },
    );
  }
}

/** Terminates the role's sessions, which would survive NOLOGIN and even DROP ROLE. @throws Unavailable */
async function endSessions({ sql, role: { oid, name }, signal }: Work): Promise<void> {
  const deadline = performance.now() + terminateSeconds * 1000;
  for (;;) {
    const alive = await sql`
      select pg_terminate_backend(pid) from pg_stat_activity where usesysid = ${oid}::text::oid`;
    if (alive.length === 0) return;
    if (performance.now() > deadline)
      throw new Unavailable(`Sessions of ${name} that do not end at the target: ${alive.length}`);
    signal.throwIfAborted();
    await Bun.sleep(pollMilliseconds);
  }
}

/** Revokes the role's memberships that the broker can revoke. DROP ROLE ends the others. */
async function leaveParents({ sql, role: { oid, name } }: Work): Promise<void> {
  const groups = await sql<{ name: string }[]>`
    select distinct g.rolname as name from pg_auth_members m join pg_roles g on g.oid = m.roleid
    where m.member = ${oid}::text::oid`;
  for (const group of groups)
    await sql.unsafe(`revoke ${identifier(group.name)} from ${identifier(name)}`).catch((error) => {
      // Granted by another role, which PostgreSQL 16 and later may report as an internal error (XX000, "no possible
      // grantors"); or the lease granted it further.
      if (!["42501", "2BP01", "0LP01", "XX000"].includes(codeOf(error))) throw error;
    });
}

/** The databases in which the role owns something or was granted privileges. pg_shdepend is shared by all of them. */
async function databasesOf(sql: Sql, { oid }: Role): Promise<string[]> {
  const databases = await sql<{ name: string }[]>`
    select distinct d.datname::text as name from pg_shdepend s
    join pg_database d on d.oid = s.dbid or (s.dbid = 0 and d.datname = current_database())
    where s.refclassid = 'pg_authid'::regclass and s.refobjid = ${oid}::text::oid`;
  return databases.map(({ name }) => name);
}

/** Gives up what the role has in every database. A database that cannot be reached does not prevent the others. */
async function clear({ sql, target, role, signal }: Work): Promise<Remaining[]> {
  const databases = await databasesOf(sql, role);
  if (databases.length === 0) return [];
  const heir = await heirOf(sql, target);
  const parents = await sql<{ name: string }[]>`
    select rolname as name from pg_roles
    where rolname in ${sql(target.parents)} and pg_has_role(current_user, oid, 'member with admin option')`;
  const known = { heir, parents: parents.map(({ name }) => name), signal };
  const remaining: Remaining[] = [];
  for (const name of databases)
    try {
      const work = (there: Sql) => clearDatabase(there, role, known);
      remaining.push(
        ...(name === target.database ? await work(sql) : await connected(target, signal, work, name)),
      );
    } catch (error) {
      if (name === target.database || signal.aborted || !(error instanceof SvcError)) throw error;
      remaining.push({
        what: `what it has in the database ${name}`,
        why: error.detail,
        command: commandToConnect(error, name, target),
      });
    }
  return remaining;
}

/** The statement that lets the broker connect to a database, if only a privilege or the database prevents it. */
function commandToConnect({ cause }: SvcError, name: string, { user }: Target): string {
  const database = identifier(name);
  // 55000: "database is not currently accepting connections".
  if (codeOf(cause) === "55000") return `alter database ${database} allow_connections true;`;
  return codeOf(cause) === "42501" ? `grant connect on database ${database} to ${identifier(user)};` : "";
}

function undecided({ name }: Role, remaining: Remaining[]): Unavailable {
  const first = remaining.find(({ command }) => command !== "") ?? remaining[0]!;
  const { what, why, command } = first;
  const stays = `${name} can no longer log in, but remains because of ${what}: ${why}`;
  if (command === "") return new Unavailable(stays);
  const more = remaining.length - 1;
  const others = more === 0 ? "" : ` (${more} more: svc access leases --explain)`;
  return new Refused(`${stays}. As a superuser, run: ${command}${others}`);
}

async function dropRole(work: Work): Promise<void> {
  const { sql, role } = work;
  try {
    await withoutHolders(work, `drop role if exists ${identifier(role.name)}`);
  } catch (error) {
    // dependent_objects_still_exist: something appeared after its database was cleared.
    if (codeOf(error) !== "2BP01") throw error;
    const places = await sql<{ name: string }[]>`
      select distinct coalesce(d.datname, current_database()) as name from pg_shdepend s
      left join pg_database d on d.oid = s.dbid
      where s.refclassid = 'pg_authid'::regclass and s.refobjid = ${role.oid}::text::oid order by 1`;
    throw new Unavailable(
      `${role.name} received objects or privileges during its revocation, in ${places.map((one) => one.name).join(", ")}`,
      { cause: error },
    );
  }
}
