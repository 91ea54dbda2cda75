import { withoutQuery } from "../drizzle/query_error.ts";
import { Conflict, SvcError, Unavailable } from "./errors.ts";

/**
 * What an operator can cause gets one clear line, by PostgreSQL's SQLSTATE or the socket's code; the rest stays as it
 * is. The message of the server is shown only where it names nothing but objects of the schema.
 */
export function operatorsError(error: unknown): unknown {
  const code = errorCode(error);
  if (error instanceof SvcError || code === undefined) return error;
  const unavailable = (detail: string) => new Unavailable(detail, { cause: error });
  switch (code) {
    case "28P01":
    case "28000":
    case "SASL_SIGNATURE_MISMATCH":
      return unavailable("PostgreSQL refuses this user or password: see SVC_DATABASE_URL");
    case "3D000":
      return unavailable("This database does not exist: svc database init creates it (see SVC_DATABASE_URL)");
    case "42501":
      return unavailable("PostgreSQL does not let this user do that: it has to own the database's schema");
    case "25006":
      return unavailable("This database is read-only (a replica?): run this against the primary");
    case "53300":
      return unavailable("PostgreSQL has no connection left for us (max_connections)");
    case "53100":
      return unavailable("The disk of PostgreSQL is full");
    case "57P01":
    case "57P02":
    case "CONNECTION_CLOSED":
    case "CONNECTION_ENDED":
    case "CONNECTION_DESTROYED":
    case "ECONNRESET":
    case "EPIPE":
      return unavailable("PostgreSQL closed the connection: run it again");
    case "ECONNREFUSED":
    case "ENOTFOUND":
    case "EAI_AGAIN":
    case "EHOSTUNREACH":
    case "ENETUNREACH":
    case "ETIMEDOUT":
    case "ENOENT":
    case "CONNECT_TIMEOUT":
    case "57P03":
      return unavailable("PostgreSQL does not answer: see SVC_DATABASE_URL");
    case "3F000":
      return unavailable(
        "The database has no schema public, where svc keeps its tables: create schema public",
      );
    case "40P01":
    case "55P03":
      return new Conflict("A table that must change stayed locked: try again when it is quieter", {
        cause: error,
      });
    default:
      return error;
  }
}

/** That line for a log, whose errors have lost their words; none for what an operator cannot cause. */
export function reasonOf(error: unknown): { reason?: string } {
  const known = operatorsError(withoutQuery(error));
  return known instanceof SvcError ? { reason: known.detail } : {};
}

/** The SQLSTATE of PostgreSQL, or the socket's code; undefined for an error that has none. */
export function errorCode(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === "string" ? code : undefined;
}

/** Whether PostgreSQL said so (a SQLSTATE), and not the network or ourselves. */
export function isPostgresError(error: unknown): error is Error & { code: string; position?: string } {
  return error instanceof Error && error.name === "PostgresError";
}
