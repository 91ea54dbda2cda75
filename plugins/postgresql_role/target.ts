import { type Static, Type } from "@sinclair/typebox";
import postgres from "postgres";
import type { RoleFacts } from "../../core/plugin.ts";
import { SvcError, Unavailable } from "../../platform/errors.ts";

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

export type Sql = postgres.Sql;

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
  const sql = postgres({
    // postgres.js splits a host at its colons, but not in a list, which its types do not know.
    ...(host.includes(":")
      ? { host: [host] as unknown as string, port: [port] as unknown as number }
      : { host, port }),
    database,
    username: user,
    password,
    max: 1,
    prepare: false,
    // Avoids a query for types that are not used here.
    fetch_types: false,
    ssl: sslMode === "disable" ? false : { rejectUnauthorized: sslMode === "verify-full", ca: sslRootCert },
    connect_timeout: secondsToConnect,
    onnotice: () => {},
    connection: {
      application_name: "svc",
      statement_timeout: statementSeconds * 1000,
      lock_timeout: statementSeconds * 1000,
      // Users of leases may create functions in `public`, and the broker must not run them.
      search_path: "pg_catalog",
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

export const codeOf = (error: unknown): string => (error as { code?: string }).code ?? "";

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
 * Whether the role exists and this installation created it.
 *
 * @throws Unavailable when another installation did, which may be this one with a former SVC_KEY_SECRET
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

/** Quote like PostgreSQL's `quote_ident` and `quote_literal`. NUL cannot occur, because the settings reject it. */
export const identifier = (name: string) => `"${name.replaceAll('"', '""')}"`;
export const literal = (text: string) => `'${text.replaceAll("'", "''")}'`;
