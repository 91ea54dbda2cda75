import { Type } from "@sinclair/typebox";
import postgres from "postgres";
import type { RoleFacts } from "../../core/plugin.ts";
import { SvcError, Unavailable } from "../../platform/errors.ts";

// The target: its settings, a connection to it, and how svc recognises what it created there.

const secondsToConnect = 5;
/** Limits each statement, so that a lock at the target does not block a worker. */
const statementSeconds = 10;

export const roleSchema = Type.Object({
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

export interface Target {
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

export function targetOf({ settings }: RoleFacts): Target {
  const { parents, ...rest } = settings as unknown as Omit<Target, "parents"> & { parents: string };
  return { ...rest, parents: parents.split(",").map((parent) => parent.trim()) };
}

export type Sql = postgres.Sql;

/**
 * Runs `work` on a connection of its own to the target, which is cut when `signal` aborts.
 *
 * @throws Unavailable with what an operator can do
 */
export async function connected<T>(
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
export async function inTransaction<T>(sql: Sql, work: (tx: Sql) => Promise<T>): Promise<T> {
  return (await sql.begin((tx) => work(tx as unknown as Sql))) as T;
}

export const codeOf = (error: unknown): string => (error as { code?: string }).code ?? "";

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

export const commentOf = (installation: string, leaseId: number) => `svc ${installation}: lease ${leaseId}`;
export const commentPattern = /^svc ([^:]+): lease \d+$/;

/** Serialises issuing and revoking by name, across processes: a revocation waits for a CREATE ROLE in progress. */
export const lockName = (sql: Sql, name: string) =>
  sql`select pg_advisory_xact_lock(hashtextextended(${`svc ${name}`}, 0))`;

/**
 * Whether the role exists and this installation created it.
 *
 * @throws Unavailable when another installation did: it may be ours under a former SVC_KEY_SECRET
 */
export async function isOurs(sql: Sql, { installation }: RoleFacts, name: string): Promise<boolean> {
  const [found] = await sql<{ comment: string | null }[]>`
    select shobj_description(oid, 'pg_authid') as comment from pg_roles where rolname = ${name}`;
  const owner = commentPattern.exec(found?.comment ?? "")?.[1];
  if (owner !== undefined && owner !== installation)
    throw new Unavailable(
      `The role ${name} belongs to another installation of svc, or SVC_KEY_SECRET changed: drop it at the target`,
    );
  return owner !== undefined;
}

export async function versionOf(sql: Sql): Promise<number> {
  const [row] = await sql<[{ version: number }]>`
    select current_setting('server_version_num')::int as version`;
  return row.version;
}

/** Quotes like PostgreSQL's `quote_ident` and `quote_literal`. NUL cannot occur: the settings reject it. */
export const identifier = (name: string) => `"${name.replaceAll('"', '""')}"`;
export const literal = (text: string) => `'${text.replaceAll("'", "''")}'`;
