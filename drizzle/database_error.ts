import { DrizzleQueryError } from "drizzle-orm";
import { Conflict, SvcError, Unavailable } from "../platform/errors.ts";
import { type DatabasePlace, placeOfError } from "./error_place.ts";

/**
 * Converts an error that an operator can cause to one clear line, by PostgreSQL's SQLSTATE or the socket's code;
 * returns others unchanged. The server's message is included only if it names nothing but schema objects.
 */
export function operatorsError(error: unknown): unknown {
  const code = errorCode(error);
  if (error instanceof SvcError || code === undefined) return error;
  const options = { cause: error };
  const unavailable = (detail: string) => new Unavailable(detail, options);
  const server = `PostgreSQL${whereOf(error)}`;
  const wrong = wrongCertificates[code];
  if (wrong !== undefined) return unavailable(`The certificate of ${server} ${wrong} (see SVC_DATABASE_URL)`);
  if (untrusted.includes(code)) {
    return unavailable(
      `The certificate of ${server} is not trusted: set sslrootcert in SVC_DATABASE_URL to the file of its authority`,
    );
  }
  switch (code) {
    case "28P01":
    case "28000":
    case "SASL_SIGNATURE_MISMATCH":
      if (/no encryption$/.test((error as Error).message)) {
        return unavailable(`${server} requires TLS: add sslmode=require to SVC_DATABASE_URL`);
      }
      return unavailable(`${server} refuses this user or password: see SVC_DATABASE_URL`);
    case "3D000":
      return unavailable(
        `${missingDatabase(error)} does not exist: svc database init creates it (see SVC_DATABASE_URL)`,
      );
    case "42501":
      if (/row-level security/.test((error as Error).message)) {
        return unavailable("Row-level security hides rows from this user: use one with BYPASSRLS");
      }
      return unavailable("PostgreSQL does not let this user do that: it must own the database's schema");
    case "CONNECTION_NO_PRIMARY":
      return unavailable(`${(error as Error).message} (see SVC_DATABASE_URL)`);
    case "25006":
      return unavailable("This database is read-only (a replica?): run this against the primary");
    case "53300":
      return unavailable(`${server} has no free connection (max_connections)`);
    case "53100":
      return unavailable("PostgreSQL's disk is full");
    case "57014":
      return unavailable("PostgreSQL cancelled a statement (statement_timeout?): run it again");
    case "08P01":
      return refusedByPooler(error) ? behindPooler(error) : error;
    case "42704":
    case "22023":
      return badParameter(error) ?? error;
    case "57P01":
    case "57P02":
    case "CONNECTION_CLOSED":
    case "CONNECTION_ENDED":
    case "CONNECTION_DESTROYED":
    case "ECONNRESET":
    case "EPIPE":
      if (/before secure TLS connection/.test((error as Error).message)) {
        return unavailable(`${server} does not offer TLS, but sslmode in SVC_DATABASE_URL requires it`);
      }
      return unavailable(`${server} closed the connection: run it again`);
    case "ECONNREFUSED":
    case "ENOTFOUND":
    case "EAI_AGAIN":
    case "EHOSTUNREACH":
    case "ENETUNREACH":
    case "ETIMEDOUT":
    case "ENOENT":
    case "CONNECT_TIMEOUT":
    case "57P03":
      return unavailable(`${server} does not answer: ${silences[code]} (see SVC_DATABASE_URL)`);
    case "3F000":
      return unavailable(
        "The database has no schema public, where svc keeps its tables: create schema public",
      );
    case "40P01":
    case "55P03":
      return new Conflict(
        "A table that must change stayed locked: try again when the database is less busy",
        options,
      );
    default:
      return error;
  }
}

/** Why nobody answers, by the code of the socket, or of PostgreSQL. */
const silences: Record<string, string> = {
  ECONNREFUSED: "connection refused",
  ENOTFOUND: "there is no such host",
  EAI_AGAIN: "the name of the host cannot be looked up now",
  EHOSTUNREACH: "there is no route to the host",
  ENETUNREACH: "there is no route to the host",
  ETIMEDOUT: "no answer in time",
  CONNECT_TIMEOUT: "no answer in time",
  ENOENT: "there is no such socket",
  "57P03": "it is starting or stopping",
};

/** ` at db.example.com:5432, database svc,` if the error knows it; never the user or the password. */
function whereOf(error: unknown): string {
  const place = placeOfError(error);
  if (place === undefined) return "";
  const { database } = place;
  return ` at ${hostAndPort(place)}${database === undefined ? "" : `, database ${database},`}`;
}

/** `The database svc at db.example.com:5432`. An address without a name means that of the user. */
function missingDatabase(error: unknown): string {
  const place = placeOfError(error);
  if (place === undefined) return "This database";
  const { database } = place;
  return `The database ${database === undefined ? "" : `${database} `}at ${hostAndPort(place)}`;
}

const hostAndPort = ({ host, port }: DatabasePlace) => `${host.includes(":") ? `[${host}]` : host}:${port}`;

export function behindPooler(cause?: unknown): Unavailable {
  return new Unavailable(
    "This is the address of a pooler: set SVC_DATABASE_DIRECT_URL to that of PostgreSQL itself (docs/scale.md)",
    { cause },
  );
}

/** Whether a pooler refused a connection for one of its settings (drizzle/client.ts), which PostgreSQL would accept. */
export function refusedByPooler(error: unknown): boolean {
  const { code, message } = Object(withoutQuery(error)) as { code?: unknown; message?: string };
  return code === "08P01" && /startup parameter/.test(message ?? "");
}

const wrongCertificates: Record<string, string> = {
  CERT_HAS_EXPIRED: "has expired",
  ERR_TLS_CERT_ALTNAME_INVALID: "is for another host name",
};

const untrusted = [
  "SELF_SIGNED_CERT_IN_CHAIN",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
];

/** Other parameters of the address go to the server, which closes a connection with an unknown one. */
function badParameter(error: unknown): Unavailable | undefined {
  const { severity, message } = error as { severity?: string; message: string };
  if (severity !== "FATAL") return undefined;
  // Quotes only a plausible name: text after a question mark may be part of a password.
  const [, name] = /parameter "([a-z_]{1,40})"/.exec(message) ?? [];
  const which = name === undefined ? "a parameter" : `the parameter ${name}`;
  const detail = `PostgreSQL refuses ${which} of SVC_DATABASE_URL: correct it, or leave it out`;
  return new Unavailable(detail, { cause: error });
}

/**
 * Why the same work may succeed on a retry: the database was unavailable (a cut connection, a restart, a failover), or
 * another transaction used the same rows (a deadlock, a lock timeout).
 */
type Transience = "outage" | "contention";

/** Insufficient resources, connection exceptions, operator intervention, and a read-only server. */
const outages = [/^08/, /^53/, /^57P0[1235]$/, /^57014$/, /^25006$/, /^25P0[34]$/, /^CONNECT(ION_|_TIMEOUT)/];
const outageCodes = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "ECONNABORTED",
  "EPIPE",
  "ETIMEDOUT",
  "EHOSTDOWN",
  "EHOSTUNREACH",
  "ENETDOWN",
  "ENETUNREACH",
  "ENOTFOUND",
  "EAI_AGAIN",
]);
const contentions = new Set(["40001", "40003", "40P01", "55P03"]);

/** Classifies an error by its code, or by its cause's; undefined for a permanent one. */
export function transience(error: unknown): Transience | undefined {
  for (let [one, depth] = [error, 0]; one && depth < mostCauses; depth += 1) {
    const code = errorCode(one);
    if (code !== undefined) {
      if (contentions.has(code)) return "contention";
      const isOutage = outageCodes.has(code) || outages.some((pattern) => pattern.test(code));
      // The socket file of a server that is restarting.
      const isSocketGone = code === "ENOENT" && (one as { syscall?: unknown }).syscall === "connect";
      if (isOutage || isSocketGone) return "outage";
    }
    one = (one as { cause?: unknown }).cause;
  }
  return undefined;
}

const mostCauses = 5;

/** The same line for a log, which drops error messages; empty for errors that an operator cannot cause. */
export function reasonOf(error: unknown): { reason?: string } {
  const known = operatorsError(withoutQuery(error));
  return known instanceof SvcError ? { reason: known.detail } : {};
}

/** Whether PostgreSQL's disk was full, for this error or one that caused it. */
export function isOutOfSpace(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause)
    if (errorCode(cause) === "53100") return true;
  return false;
}

/** PostgreSQL's SQLSTATE, or the socket's code; undefined for an error without one. */
export function errorCode(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === "string" ? code : undefined;
}

/** Whether the error comes from PostgreSQL (with a SQLSTATE), not from the network or ourselves. */
export function isPostgresError(error: unknown): error is Error & { code: string; position?: string } {
  return error instanceof Error && error.name === "PostgresError";
}

/** The error from PostgreSQL or the socket: drizzle's wrapper contains the query and its values. */
export function withoutQuery(error: unknown): unknown {
  return error instanceof DrizzleQueryError ? error.cause : error;
}
