import { randomBytes } from "node:crypto";
import { Type } from "@sinclair/typebox";
import postgres from "postgres";
import { definePlugin, type LeaseFacts, type RoleFacts } from "../../core/plugin.ts";
import { Refused, SvcError, Unavailable } from "../../platform/errors.ts";
import { scramVerifier } from "./scram.ts";

// Vocabulary. The target is a PostgreSQL server. The broker is the account by which we act there: CREATEROLE, but no
// superuser. The parents are roles with the rights that a lease is to have; a lease is a role that is a member of them
// and has no rights of its own, since thousands of grants would make every catalog of the target large and slow.
//
// Role names are quoted as identifiers and never come from a user as they are. The comment of a role says which lease it
// is of, and only what has that comment is ever dropped: a name alone may be somebody else's.

const secondsToConnect = 5;
/** Of one statement at the target, so that a lock there holds nothing up here. */
const statementSeconds = 10;
const terminateSeconds = 5;

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
    check: ({ role }) => check(targetOf(role)),
    issue: (call) => issue(call),
    revoke: (call) => revoke(call),
    renew: (call) => renew(call),
    list: ({ role }) => list(targetOf(role)),
  }),
});

type Sql = postgres.Sql;

/** Does something at the target by one connection. @throws Unavailable, or Refused with what an operator can do */
async function at<T>(target: Target, work: (sql: Sql) => Promise<T>, database = target.database): Promise<T> {
  const { host, port, user, password, sslMode, sslRootCert } = target;
  const sql = postgres({
    ...{ host, port, database, username: user, password, max: 1, prepare: false },
    ssl: sslMode === "disable" ? false : { rejectUnauthorized: sslMode === "verify-full", ca: sslRootCert },
    connect_timeout: secondsToConnect,
    onnotice: () => {},
    connection: {
      application_name: "svc",
      statement_timeout: statementSeconds * 1000,
      lock_timeout: statementSeconds * 1000,
    },
  });
  try {
    return await work(sql);
  } catch (error) {
    throw targetError(error, `${host}:${port}/${database}`);
  } finally {
    await sql.end({ timeout: 1 });
  }
}

/** The SQLSTATE says enough: a message of PostgreSQL may repeat a statement. */
function targetError(error: unknown, place: string): unknown {
  if (error instanceof SvcError) return error;
  const code = (error as { code?: string }).code ?? "";
  const said: Record<string, string> = {
    "28P01": "refuses the broker's password",
    "28000": "refuses the broker account",
    "3D000": "has no such database",
    "42501": "does not let the broker do that: svc access check names the missing right",
    "42710": "has a role of this name already",
    "53300": "has no connection left",
    "25006": "is read-only",
    "57P03": "is starting or stopping",
    "55P03": "has what we need locked",
    "57014": "took too long",
    "42704": "lacks a role that the access role names: svc access check names it",
    ECONNREFUSED: "refuses connections",
    CONNECT_TIMEOUT: "does not answer",
    ENOTFOUND: "is no host that can be found",
  };
  return new Unavailable(`PostgreSQL at ${place} ${said[code] ?? `failed (${code || "no code"})`}`, {
    cause: error,
  });
}

/** Which lease a role is of, as its comment. */
const commentOf = (leaseId: number) => `svc lease ${leaseId}`;

/** One after the other, whatever process they come from: what is being created has not been missed. */
const lockName = (sql: Sql, name: string) =>
  sql`select pg_advisory_xact_lock(hashtextextended(${`svc ${name}`}, 0))`;

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
  const expiresAt = await at(target, (sql) =>
    sql.begin(async (tx) => {
      const begin = tx as unknown as Sql;
      await lockName(begin, name);
      // By the target's own clock, which may be another than ours.
      const [end] = await begin<{ until: string }[]>`
        select (now() + make_interval(secs => ${seconds}))::timestamptz(0)::text as until`;
      signal.throwIfAborted();
      const parents = target.parents.map(identifier).join(", ");
      await begin.unsafe(
        `create role ${identifier(name)} login inherit nocreatedb nocreaterole noreplication
           connection limit ${Number(target.connectionLimit)} password ${literal(verifier)}
           valid until ${literal(end!.until)} in role ${parents}`,
      );
      await begin.unsafe(`comment on role ${identifier(name)} is ${literal(commentOf(leaseId))}`);
      signal.throwIfAborted();
    }),
  ).then(() => undefined);
  const fields: Record<string, string> = {
    ...{ engine: "postgresql", user: name, password, database: target.database },
    host: target.clientHost ?? target.host,
    port: String(target.clientPort ?? target.port),
    sslmode: target.sslMode,
  };
  return { kind: "database" as const, fields, expiresAt };
}

async function renew({ leaseId, name, role, seconds }: LeaseFacts & { seconds: number }) {
  await at(targetOf(role), (sql) =>
    sql.begin(async (tx) => {
      const begin = tx as unknown as Sql;
      await lockName(begin, name);
      if (!(await isOurs(begin, leaseId, name))) throw new Refused("The role of this lease is gone");
      const [end] = await begin<{ until: string }[]>`
        select (now() + make_interval(secs => ${seconds}))::timestamptz(0)::text as until`;
      await begin.unsafe(`alter role ${identifier(name)} valid until ${literal(end!.until)}`);
    }),
  );
  return {};
}

/** Whether there is a role of this name that we have made for this lease. */
async function isOurs(sql: Sql, leaseId: number, name: string): Promise<boolean> {
  const [found] = await sql<{ comment: string | null }[]>`
    select shobj_description(oid, 'pg_authid') as comment from pg_roles where rolname = ${name}`;
  return found?.comment === commentOf(leaseId);
}

/**
 * Six steps, each of which may have been done before: no new logins, committed; no sessions; the broker a member, so that
 * it may act for the role; nothing owned or granted in any database; dropped; gone.
 */
async function revoke({ leaseId, name, role, signal }: LeaseFacts & { signal: AbortSignal }): Promise<void> {
  const target = targetOf(role);
  await at(target, async (sql) => {
    const exists = await sql.begin(async (tx) => {
      const begin = tx as unknown as Sql;
      await lockName(begin, name);
      if (!(await isOurs(begin, leaseId, name))) return false;
      await begin.unsafe(`alter role ${identifier(name)} nologin`);
      return true;
    });
    if (!exists) return;
    await endSessions(sql, name, signal);
    const [{ version }] = await sql<[{ version: number }]>`
      select current_setting('server_version_num')::int as version`;
    const options = version >= 160_000 ? " with inherit true, set true" : "";
    await sql.unsafe(`grant ${identifier(name)} to ${identifier(target.user)}${options}`);
    const clear = (there: Sql) =>
      there.unsafe(
        `reassign owned by ${identifier(name)} to ${identifier(target.user)}; drop owned by ${identifier(name)}`,
      );
    // What it has in any database is said in one catalog for all.
    const databases = await sql<{ name: string }[]>`
      select distinct d.datname as name from pg_shdepend s join pg_roles r on r.oid = s.refobjid
      join pg_database d on d.oid = s.dbid or (s.dbid = 0 and d.datname = current_database())
      where s.refclassid = 'pg_authid'::regclass and r.rolname = ${name}`;
    for (const database of databases)
      await (database.name === target.database ? clear(sql) : at(target, clear, database.name));
    await endSessions(sql, name, signal);
    await sql.unsafe(`drop role if exists ${identifier(name)}`);
    if (await isOurs(sql, leaseId, name))
      throw new Unavailable("The role is still there after it was dropped");
  });
}

/** Sessions go on after their role may no longer log in, and even after it is dropped. @throws Unavailable */
async function endSessions(sql: Sql, name: string, signal: AbortSignal): Promise<void> {
  const deadline = performance.now() + terminateSeconds * 1000;
  for (;;) {
    const alive = await sql`
      select pg_terminate_backend(pid) from pg_stat_activity where usename = ${name}`;
    if (alive.length === 0) return;
    if (performance.now() > deadline)
      throw new Unavailable(`${alive.length} sessions of ${name} do not end at the target`);
    signal.throwIfAborted();
    await Bun.sleep(20);
  }
}

/** All roles that have our comment, whichever lease they were for. */
async function list(target: Target): Promise<string[]> {
  return await at(target, async (sql) => {
    const rows = await sql<{ name: string }[]>`
      select rolname as name from pg_roles
      where shobj_description(oid, 'pg_authid') ~ '^svc lease [0-9]+$' order by rolname`;
    return rows.map(({ name }) => name);
  });
}

async function check(target: Target): Promise<{ problem: string; fix?: string }[]> {
  const { user, parents } = target;
  const broker = identifier(user);
  return await at(target, async (sql) => {
    const problems: { problem: string; fix?: string }[] = [];
    const [me] = await sql<[{ super: boolean; create: boolean; version: number; readonly: string }]>`
      select rolsuper as super, rolcreaterole as create, current_setting('server_version_num')::int as version,
        current_setting('transaction_read_only') as readonly
      from pg_roles where rolname = current_user`;
    if (me.readonly === "on") problems.push({ problem: "The target is read-only: name its primary" });
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

/** As PostgreSQL's `quote_ident` and `quote_literal`; neither holds a NUL, which the settings refuse. */
const identifier = (name: string) => `"${name.replaceAll('"', '""')}"`;
const literal = (text: string) => `'${text.replaceAll("'", "''")}'`;
