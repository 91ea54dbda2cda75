import { DrizzleQueryError } from "drizzle-orm";

/** What PostgreSQL or the socket said: drizzle's own error around it holds the query with its values. */
export function withoutQuery(error: unknown): unknown {
  return error instanceof DrizzleQueryError ? error.cause : error;
}
