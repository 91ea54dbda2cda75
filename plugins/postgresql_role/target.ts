import { type Static, Type } from "@sinclair/typebox";
import type { RoleFacts } from "../../core/plugin.ts";
import { DatabaseSocket } from "../../drizzle/connection/socket.ts";
import { openSql, type Sql } from "../../drizzle/connection/sql.ts";
import { Refused, SvcError, Unavailable } from "../../platform/errors.ts";

// The target: its settings, connections to it, and how svc recognises the roles that it created there.

const secondsToConnect = 5;
/** Limits each statement, so that a lock at the target does not block a worker. */
const statementSeconds = 10;

export const roleSchema = Type.Object({
  host: Type.String({ minLength: 1, maxLength: 255, description: "the host of the target" }),
  port: Type.Integer({ default: 5432, minimum: 1, maximum: 65_535, description: "its port" }),
  database: Type.String({ minLength: 1, maxLength: 63, description: "the database that users connect to" }),
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
    description: "the roles whose privileges a lease has, comma-separated",
  }),
  setRole: Type.Boolean({
    default: false,
    description:
      "whether users may SET ROLE to the parents, such as to create objects that the parents own and that remain",
  }),
  accept: Type.Optional(
    Type.String({
      maxLength: 1000,
      description: "the risks of the parents to accept, comma-separated, as svc access check names them",
    }),
  ),
  connectionLimit: Type.Integer({
    default: 5,
    minimum: 1,
    maximum: 1000,
    description: "how many connections a lease may open",
  }),
  clientHost: Type.Optional(Type.String({ maxLength: 255, description: "the host for users, if different" })),
  clientPort: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 65_535, description: "the port for users, if different" }),
  ),
});

type Settings = Static<typeof roleSchema>;
export type Target = Omit<Settings, "parents"> & { parents: string[] };

/** Identifies a PostgreSQL cluster; its replicas have the same. */
export async function clusterOf(sql: Sql): Promise<string> {
  const [row] = await sql<{ id: string }[]>`select system_identifier::text as id from pg_control_system()`;
  return row!.id;
}

export function targetOf({ settings }: RoleFacts): Target {
  const { parents, ...rest } = settings as Settings;
  return { ...rest, parents: parents.split(",").map((parent) => parent.trim()) };
}

export type { Sql };

/**
 * Runs `work` on a new connection to the target, which is closed when `signal` aborts.
 *
 * @throws Unavailable with a description for operators
 */
export async function connected<T>(
  target: Target,
  signal: AbortSignal,
  work: (sql: Sql) => Promise<T>,
  database = target.database,
): Promise<T> {
  const { host, port, user, password, sslMode, sslRootCert } = target;
  signal.throwIfAborted();
  // As svc connects to its own database: postgres.js alone does not survive a connection that ends at the wrong moment.
  const sql = openSql("postgres://target", {
    ...({ socket: () => new DatabaseSocket().to({ host, port }) } as object),
    database,
    username: user,
    password,
    max: 1,
    prepare: false,
    ssl: sslMode === "disable" ? false : { rejectUnauthorized: sslMode === "verify-full", ca: sslRootCert },
    connect_timeout: secondsToConnect,
    connection: {
      statement_timeout: statementSeconds * 1000,
      lock_timeout: statementSeconds * 1000,
      // A worker whose host vanished must not hold locks until TCP gives up.
      idle_in_transaction_session_timeout: statementSeconds * 1000,
      // Users of leases may create functions in `public`, and the broker must not run them.
      search_path: "pg_catalog",
      // A database or a role may set these differently. What a client sends when it connects takes precedence.
      role: "none",
      TimeZone: "UTC",
      standard_conforming_strings: "on",
      // Compiling takes longer than any of these queries.
      jit: "off",
    },
  });
  // The server's timeouts do not help when it is frozen or unreachable: the client would still wait for the ROLLBACK.
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
export async function inTransaction<T>(sql: Sql, work: (tx: Sql) => Promise<T>): Promise<T> {
  return (await sql.begin((tx) => work(tx as unknown as Sql))) as T;
}

export const codeOf = (error: unknown): string => (error as { code?: string } | undefined)?.code ?? "";

/** Describes a failure by its SQLSTATE, because PostgreSQL's message may repeat a statement. */
function targetError(error: unknown, place: string): unknown {
  if (error instanceof SvcError) return error;
  const code = codeOf(error);
  const meanings: Record<string, string> = {
    "28P01": "rejected the broker's password",
    "28000": "rejected the broker account",
    "3D000": "has no such database",
    "42501": "denied the broker a privilege: run svc access check",
    "42710": "already has a role of this name",
    "53300": "has no free connections for the broker",
    "25006": "is read-only",
    "57P01": "closed the connection",
    "57P03": "is starting up or shutting down",
    "55P03": "holds a lock on an object that must change",
    "57014": "took too long",
    "42704": "lacks a parent role: run svc access check",
    "55000": "accepts no connections to this database",
    ECONNREFUSED: "refused the connection",
    ECONNRESET: "closed the connection; unless sslMode is disable, it must accept TLS",
    CONNECT_TIMEOUT: "did not answer",
    CONNECTION_CLOSED: "closed the connection",
    ENOTFOUND: "has an unknown host name",
  };
  return new Unavailable(`PostgreSQL at ${place} ${meanings[code] ?? `failed (${code || "no code"})`}`, {
    cause: error,
  });
}

export const commentOf = (installation: string, leaseId: number) => `svc ${installation}: lease ${leaseId}`;
export const commentPattern = /^svc ([^:]+): lease \d+$/;

/** Serializes issuing and revoking by name across processes, so a revocation waits for a CREATE ROLE in progress. */
export const lockName = (sql: Sql, name: string) =>
  sql`select pg_advisory_xact_lock(hashtextextended(${`svc ${name}`}, 0))`;

/**
 * What a lease stores: the cluster, the OID of its role there, and the transaction that created it. Leases of earlier
 * releases have only the cluster.
 */
export async function handleOf(sql: Sql, name: string): Promise<string> {
  const [row] = await sql<[{ oid: string; xid: string }]>`
    select oid::text, pg_current_xact_id()::text as xid from pg_roles where rolname = ${name}`;
  return `${await clusterOf(sql)} ${row.oid} ${row.xid}`;
}

export function readHandle(handle: string | undefined) {
  const [cluster, oid, xid] = handle?.split(" ") ?? [];
  return { cluster, oid, xid };
}

/** The role of a lease at the target. Its name can change. */
export interface Role {
  oid: string;
  name: string;
}

/**
 * Finds the role of a lease by its OID, which remains when somebody renames the role or comments on it, or by its name.
 *
 * @throws Refused when a role of this name exists that svc did not create, or that it does not recognise
 * @throws Unavailable when another installation created it, which may be this one with a former SVC_KEY_SECRET
 */
export async function findRole(
  sql: Sql,
  { installation }: RoleFacts,
  { leaseId, name, handle }: { leaseId: number; name: string; handle?: string },
): Promise<Role | undefined> {
  const { cluster, oid = "0" } = readHandle(handle);
  const rows = await sql<(Role & { comment: string | null; expires: boolean; cluster: string })[]>`
    select oid::text, rolname as name, shobj_description(oid, 'pg_authid') as comment,
      coalesce(isfinite(rolvaliduntil), false) as expires,
      (select system_identifier::text from pg_control_system()) as cluster
    from pg_roles where oid = ${oid}::text::oid or rolname = ${name}`;
  const byOid = rows.find((row) => row.oid === oid && row.cluster === cluster);
  const found = byOid ?? rows.find((row) => row.name === name);
  if (!found) return undefined;
  const owner = commentPattern.exec(found.comment ?? "")?.[1];
  if (owner !== undefined && owner !== installation)
    throw new Unavailable(
      `The role ${found.name} belongs to another installation of svc, or SVC_KEY_SECRET changed: drop it at the target`,
    );
  // After a restore of the target, an OID may belong to a role that somebody else has created since. Few of those expire.
  const isTheirs = !byOid || (byOid.name !== name && !byOid.expires);
  if (isTheirs && owner === undefined)
    throw new Refused(
      `svc does not recognise the role ${found.name}: drop it, or run at the target: comment on role ${identifier(found.name)} is ${literal(commentOf(installation, leaseId))};`,
    );
  return { oid: found.oid, name: found.name };
}

/** Lets the broker act for a role. */
export async function grantToBroker(sql: Sql, { user }: Target, name: string): Promise<void> {
  const options = (await versionOf(sql)) >= 160_000 ? " with inherit true, set true" : "";
  await sql.unsafe(`grant ${identifier(name)} to ${identifier(user)}${options}`);
}

export async function versionOf(sql: Sql): Promise<number> {
  const [row] = await sql<[{ version: number }]>`
    select current_setting('server_version_num')::int as version`;
  return row.version;
}

/** Quote like PostgreSQL's `quote_ident` and `quote_literal`. NUL cannot occur, because the settings reject it. */
export const identifier = (name: string) => `"${name.replaceAll('"', '""')}"`;
export const literal = (text: string) => `'${text.replaceAll("'", "''")}'`;
