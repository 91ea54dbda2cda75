import { randomBytes } from "node:crypto";
import { Type } from "@sinclair/typebox";
import postgres from "postgres";
import { definePlugin, type LeaseFacts, type RoleFacts } from "../../core/plugin.ts";
import { Refused, SvcError, Unavailable } from "../../platform/errors.ts";
import { scramVerifier } from "./scram.ts";

// Vocabulary. The target is a PostgreSQL server. The broker is the account svc uses there: CREATEROLE, not a superuser. The
// parents are roles with the rights that a lease grants; a lease is a login role that is a member of them. It has no grants
// of its own, because thousands of grants bloat the catalogs of the target.
//
// What a lease leaves behind goes to the heir, a role without login and without privileges. Owned by the broker or a parent,
// a view, a rule, a SECURITY DEFINER function or an index expression that somebody left would act with their privileges
// when others use the object, and autovacuum alone is enough to run an index expression.
//
// A lease role's comment names the installation of svc that created it. Only roles with our comment are ever changed or
// dropped: a name alone may belong to somebody else, and several installations may share a target.

const secondsToConnect = 5;
/** Limits each statement, so that a lock at the target does not block a worker. */
const statementSeconds = 10;
/** How long a role's sessions may take to end before the attempt fails. */
const terminateSeconds = 5;
/** How long to wait for a lock that a session of the role may hold, before terminating its sessions again. */
const ownLockMilliseconds = 250;
const pollMilliseconds = 20;
/** Bytes; PostgreSQL truncates longer names. */
const longestName = 63;

const roleSchema = Type.Object({
  host: Type.String({ minLength: 1, maxLength: 255, description: "the host of the target" }),
  port: Type.Integer({ default: 5432, minimum: 1, maximum: 65_535, description: "its port" }),
  database: Type.String({ minLength: 1, maxLength: 63, description: "the database that people are to use" }),
  user: Type.String({ minLength: 1, maxLength: 63, description: "the broker account" }),
  password: Type.String({ secret: true, minLength: 1, description: "the password of the broker account" }),
  sslMode: Type.Union(
    ["verify-full", "require", "disable"].map((mode) => Type.Literal(mode)),
    { default: "verify-full", description: "verify-full, require or disable, as in libpq" },
  ),
  sslRootCert: Type.Optional(
    Type.String({
      maxLength: 20_000,
      description: "the target's authority (PEM), if it is not a public one",
    }),
  ),
  parents: Type.String({
    pattern: "^[^,]{1,63}( *, *[^,]{1,63})*$",
    description: "the roles whose rights a lease has, comma-separated",
  }),
  connectionLimit: Type.Integer({
    ...{ default: 5, minimum: 1, maximum: 1000 },
    description: "connections that one lease may open",
  }),
  clientHost: Type.Optional(
    Type.String({ maxLength: 255, description: "the host as people reach it, if that is another" }),
  ),
  clientPort: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 65_535, description: "the port as people reach it" }),
  ),
});

interface Target {
  host: string;
  port: number;
  database: string;
  user: string;
  password: string;
  sslMode: string;
  sslRootCert?: string;
  parents: string[];
  connectionLimit: number;
  clientHost?: string;
  clientPort?: number;
}

function targetOf({ settings }: RoleFacts): Target {
  const { parents, ...rest } = settings as unknown as Omit<Target, "parents"> & { parents: string };
  return { ...rest, parents: parents.split(",").map((parent) => parent.trim()) };
}

export default definePlugin({
  ...{ title: "PostgreSQL roles", slug: "postgresql-role", version: "1.0.0", author: "svc" },
  type: "credential",
  description: "Creates a PostgreSQL role for each lease, a member of existing roles",
  configSchema: Type.Object({}),
  roleSchema,
  create: () => ({
    check: (call) => check(call),
    issue: (call) => issue(call),
    revoke: (call) => revoke(call),
    renew: (call) => renew(call),
    list: (call) => list(call),
  }),
});

type Sql = postgres.Sql;

/**
 * Runs `work` on a connection of its own to the target, which is cut when `signal` aborts.
 *
 * @throws Unavailable with what an operator can do
 */
async function connected<T>(
  target: Target,
  signal: AbortSignal,
  work: (sql: Sql) => Promise<T>,
  database = target.database,
): Promise<T> {
  const { host, port, user, password, sslMode, sslRootCert } = target;
  signal.throwIfAborted();
  const sql = postgres({
    ...{ host, port, database, username: user, password, max: 1, prepare: false },
    // Otherwise each connection begins with a query for types that are not used here.
    fetch_types: false,
    ssl: sslMode === "disable" ? false : { rejectUnauthorized: sslMode === "verify-full", ca: sslRootCert },
    connect_timeout: secondsToConnect,
    onnotice: () => {},
    connection: {
      application_name: "svc",
      statement_timeout: statementSeconds * 1000,
      lock_timeout: statementSeconds * 1000,
      // Users of leases may create functions in `public`: with these in the path, the broker would run them.
      search_path: "pg_catalog",
    },
  });
  // The server's own timeouts do not help when it is frozen or cut off. The client would wait for a ROLLBACK even then.
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const cut = () => {
    void sql.end({ timeout: 0 });
    reject(new Unavailable(`PostgreSQL at ${host}:${port}/${database} did not answer in time`));
  };
  signal.addEventListener("abort", cut, { once: true });
  try {
    return await Promise.race([work(sql), aborted]);
  } catch (error) {
    throw targetError(error, `${host}:${port}/${database}`);
  } finally {
    signal.removeEventListener("abort", cut);
    await sql.end({ timeout: signal.aborted ? 0 : 1 });
  }
}

/** Runs `work` in a transaction. */
async function inTransaction<T>(sql: Sql, work: (tx: Sql) => Promise<T>): Promise<T> {
  return (await sql.begin((tx) => work(tx as unknown as Sql))) as T;
}

const codeOf = (error: unknown): string => (error as { code?: string }).code ?? "";

/** Describes a failure by its SQLSTATE; the message of PostgreSQL may repeat a statement. */
function targetError(error: unknown, place: string): unknown {
  if (error instanceof SvcError) return error;
  const code = codeOf(error);
  const meanings: Record<string, string> = {
    "28P01": "rejects the broker's password",
    "28000": "rejects the broker account",
    "3D000": "has no such database",
    "42501": "denies the broker a right: svc access check names it",
    "42710": "already has a role of this name",
    "53300": "has no free connections",
    "25006": "is read-only",
    "57P01": "closed the connection",
    "57P03": "is starting up or shutting down",
    "55P03": "has locked an object that must be changed",
    "57014": "took too long",
    "42704": "lacks a parent role: svc access check names it",
    ECONNREFUSED: "refuses connections",
    CONNECT_TIMEOUT: "does not answer",
    CONNECTION_CLOSED: "closed the connection",
    ENOTFOUND: "cannot be resolved",
  };
  return new Unavailable(`PostgreSQL at ${place} ${meanings[code] ?? `failed (${code || "no code"})`}`, {
    cause: error,
  });
}

const heirComment = "svc: owner of what leases left behind, without privileges";
const commentOf = (installation: string, leaseId: number) => `svc ${installation}: lease ${leaseId}`;
const commentPattern = /^svc ([^:]+): lease \d+$/;

/** Serialises issuing and revoking by name, across processes: a revocation waits for a CREATE ROLE in progress. */
const lockName = (sql: Sql, name: string) =>
  sql`select pg_advisory_xact_lock(hashtextextended(${`svc ${name}`}, 0))`;

/** The end of a lease by the target's clock, which may differ from ours. */
async function endAtTarget(sql: Sql, seconds: number): Promise<string> {
  const [end] = await sql<{ until: string }[]>`
    select (now() + make_interval(secs => ${seconds}))::timestamptz(0)::text as until`;
  return literal(end!.until);
}

async function issue({
  leaseId,
  name,
  role,
  seconds,
  signal,
}: LeaseFacts & { seconds: number; signal: AbortSignal }) {
  const target = targetOf(role);
  const password = randomBytes(24).toString("base64url");
  const verifier = await scramVerifier(password);
  await connected(target, signal, (sql) =>
    inTransaction(sql, async (tx) => {
      await lockName(tx, name);
      const until = await endAtTarget(tx, seconds);
      const parents = target.parents.map(identifier).join(", ");
      signal.throwIfAborted();
      await tx.unsafe(
        `create role ${identifier(name)} login inherit nocreatedb nocreaterole noreplication
           connection limit ${Number(target.connectionLimit)} password ${literal(verifier)}
           valid until ${until} in role ${parents};
         comment on role ${identifier(name)} is ${literal(commentOf(role.installation, leaseId))}`,
      );
      signal.throwIfAborted();
    }),
  );
  const fields: Record<string, string> = {
    ...{ engine: "postgresql", user: name, password, database: target.database },
    host: target.clientHost ?? target.host,
    port: String(target.clientPort ?? target.port),
    sslmode: target.sslMode,
  };
  return { kind: "database" as const, fields };
}

async function renew({ name, role, seconds, signal }: LeaseFacts & { seconds: number; signal: AbortSignal }) {
  await connected(targetOf(role), signal, (sql) =>
    inTransaction(sql, async (tx) => {
      if (!(await isOurs(tx, role, name))) throw new Refused("The role of this lease no longer exists");
      await tx.unsafe(`alter role ${identifier(name)} valid until ${await endAtTarget(tx, seconds)}`);
    }),
  );
  return {};
}

/**
 * Whether the role exists and this installation created it.
 *
 * @throws Unavailable when another installation did: it may be ours under a former SVC_KEY_SECRET
 */
async function isOurs(sql: Sql, { installation }: RoleFacts, name: string): Promise<boolean> {
  const [found] = await sql<{ comment: string | null }[]>`
    select shobj_description(oid, 'pg_authid') as comment from pg_roles where rolname = ${name}`;
  const owner = commentPattern.exec(found?.comment ?? "")?.[1];
  if (owner !== undefined && owner !== installation)
    throw new Unavailable(
      `The role ${name} belongs to another installation of svc, or SVC_KEY_SECRET changed: drop it at the target`,
    );
  return owner !== undefined;
}

/**
 * Ends a role in six steps, each of which may have been done before: no new logins, committed; sessions terminated; the
 * role granted to the broker, so that it may act for it; nothing owned or granted in any database; dropped; verified.
 */
async function revoke({ name, role, signal }: LeaseFacts & { signal: AbortSignal }): Promise<void> {
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

async function versionOf(sql: Sql): Promise<number> {
  const [row] = await sql<[{ version: number }]>`
    select current_setting('server_version_num')::int as version`;
  return row.version;
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
  await inTransaction(sql, async (tx) => {
    await lockName(tx, heir);
    if (await find(tx)) return;
    const options = version >= 160_000 ? " with inherit true, set true" : "";
    await tx.unsafe(
      `create role ${identifier(heir)} nologin noinherit;
       comment on role ${identifier(heir)} is ${literal(heirComment)};
       grant ${identifier(heir)} to ${identifier(user)}${options}`,
    );
  });
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

/** The lease roles of this installation. */
async function list({ role, signal }: { role: RoleFacts; signal: AbortSignal }): Promise<string[]> {
  return await connected(targetOf(role), signal, async (sql) => {
    const rows = await sql<{ name: string; comment: string }[]>`
      select rolname as name, shobj_description(oid, 'pg_authid') as comment from pg_roles
      where shobj_description(oid, 'pg_authid') like 'svc %' order by rolname`;
    return rows
      .filter(({ comment }) => commentPattern.exec(comment)?.[1] === role.installation)
      .map(({ name }) => name);
  });
}

async function check({
  role,
  signal,
}: {
  role: RoleFacts;
  signal: AbortSignal;
}): Promise<{ problem: string; fix?: string }[]> {
  const target = targetOf(role);
  const { user, parents } = target;
  const broker = identifier(user);
  return await connected(target, signal, async (sql) => {
    const problems: { problem: string; fix?: string }[] = [];
    const [me] = await sql<[{ super: boolean; create: boolean; inherit: boolean; readonly: string }]>`
      select rolsuper as super, rolcreaterole as create, rolinherit as inherit,
        current_setting('transaction_read_only') as readonly
      from pg_roles where rolname = current_user`;
    if (me.readonly === "on")
      problems.push({ problem: "The target is read-only: set the host of its primary" });
    if ((await versionOf(sql)) < 150_000)
      problems.push({
        problem: "The target is older than PostgreSQL 15, which is the oldest supported version",
      });
    if (!me.inherit && !me.super)
      problems.push({
        problem: `The broker ${user} does not inherit rights, so it cannot drop what a lease owns`,
        fix: `alter role ${broker} inherit;`,
      });
    if (me.super)
      problems.push({
        problem: `The broker ${user} is a superuser, which is more than it needs`,
        fix: `alter role ${broker} nosuperuser createrole;`,
      });
    if (!me.create && !me.super)
      problems.push({
        problem: `The broker ${user} may not create roles`,
        fix: `alter role ${broker} createrole;`,
      });
    const known = await sql<{ name: string; admin: boolean; high: boolean }[]>`
      select rolname as name, rolsuper as high,
        pg_has_role(current_user, oid, 'member with admin option') as admin
      from pg_roles where rolname in ${sql(parents)}`;
    for (const parent of parents) {
      const found = known.find(({ name }) => name === parent);
      const grant = `grant ${identifier(parent)} to ${broker} with admin option;`;
      if (!found)
        problems.push({
          problem: `There is no role ${parent}`,
          fix: `create role ${identifier(parent)} nologin; ${grant}`,
        });
      else if (found.high)
        problems.push({ problem: `${parent} is a superuser: a lease would have every right` });
      else if (!found.admin && !me.super)
        problems.push({ problem: `The broker ${user} may not grant ${parent}`, fix: grant });
    }
    const [signals] = await sql<[{ may: boolean }]>`
      select pg_has_role(current_user, 'pg_signal_backend', 'member') as may`;
    if (!signals.may)
      problems.push({
        problem: `The broker ${user} may not end sessions of others`,
        fix: `grant pg_signal_backend to ${broker};`,
      });
    return problems;
  });
}

/** Quotes like PostgreSQL's `quote_ident` and `quote_literal`. NUL cannot occur: the settings reject it. */
const identifier = (name: string) => `"${name.replaceAll('"', '""')}"`;
const literal = (text: string) => `'${text.replaceAll("'", "''")}'`;
