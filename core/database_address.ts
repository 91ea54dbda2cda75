import { isPooled, whichBackend } from "../drizzle/pooler.ts";
import type { Sql } from "../drizzle/sql.ts";
import type { Config } from "./config.ts";
import { Unavailable } from "./errors.ts";

// SVC_DATABASE_URL may be the address of a pooler, which lends a connection for no longer than a transaction. What needs
// PostgreSQL itself goes by SVC_DATABASE_DIRECT_URL: LISTEN, the lock of schema changes, settings that last, COPY.

/** Whether connections by SVC_DATABASE_URL keep prepared statements. PgBouncer before 1.21 would lose them. */
export function keepsStatements(config: Pick<Config, "databasePrepare" | "databaseDirectUrl">): boolean {
  return config.databasePrepare ?? config.databaseDirectUrl === undefined;
}

/** @throws Unavailable where a pooler is and PostgreSQL itself is needed */
export async function refusePooler(sql: Pick<Sql, "unsafe">): Promise<void> {
  if (isPooled(await sql.unsafe(whichBackend))) throw behindPooler();
}

export function behindPooler(): Unavailable {
  return new Unavailable(
    "This address is a pooler's: SVC_DATABASE_DIRECT_URL has to name PostgreSQL itself (docs/scale.md)",
  );
}
