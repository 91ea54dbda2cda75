/** The embedded PostgreSQL cannot start or stop. The message is one line for the person at the terminal, with the fix. */
export class EmbeddedPostgresError extends Error {
  override name = "EmbeddedPostgresError";
}
