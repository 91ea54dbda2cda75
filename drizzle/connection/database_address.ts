import { Unavailable } from "../../platform/errors.ts";
import { operatorsError } from "../database_error.ts";
import { isPooled, whichBackend } from "./pooler.ts";
import { primaryOf, type Sql } from "./sql.ts";

// SVC_DATABASE_URL may be the address of a pooler, which lends a connection for no longer than a transaction. What needs
// PostgreSQL itself goes by SVC_DATABASE_DIRECT_URL: LISTEN, the lock of schema changes, settings that last, COPY.

/** Whether connections by SVC_DATABASE_URL keep prepared statements. PgBouncer before 1.21 would lose them. */
export function keepsStatements(config: { databasePrepare?: boolean; databaseDirectUrl?: string }): boolean {
  return config.databasePrepare ?? config.databaseDirectUrl === undefined;
}

/** @throws Unavailable where a pooler is and PostgreSQL itself is needed */
export async function refusePooler(sql: Pick<Sql, "unsafe">): Promise<void> {
  if (isPooled(await sql.unsafe(whichBackend))) throw behindPooler();
}

export function behindPooler(): Unavailable {
  return new Unavailable(
    "This is the address of a pooler: set SVC_DATABASE_DIRECT_URL to that of PostgreSQL itself (docs/scale.md)",
  );
}

/**
 * Of an address with several hosts, the address of the server that takes writes now: for a command, which needs no other
 * one while it runs, and for PostgreSQL's own tools. An address of one host is returned as it is.
 *
 * @throws Unavailable when none takes writes
 */
export async function singleAddress(address: string): Promise<string> {
  try {
    return (await primaryOf(address)?.find())?.address ?? address;
  } catch (error) {
    throw operatorsError(error);
  }
}
