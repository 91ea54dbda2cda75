import { behindPooler, operatorsError } from "../database_error.ts";
import { isPooled, whichBackend } from "./pooler.ts";
import { primaryOf, type Sql } from "./sql.ts";

// SVC_DATABASE_URL may be the address of a pooler, which assigns a connection for one transaction at most. Work that
// needs a connection to PostgreSQL itself uses SVC_DATABASE_DIRECT_URL: LISTEN, the schema change lock, lasting
// settings, COPY.

/** Whether connections through SVC_DATABASE_URL keep prepared statements. PgBouncer before 1.21 loses them. */
export function keepsStatements(config: { databasePrepare?: boolean; databaseDirectUrl?: string }): boolean {
  return config.databasePrepare ?? config.databaseDirectUrl === undefined;
}

/** @throws Unavailable behind a pooler, for work that needs PostgreSQL itself */
export async function refusePooler(sql: Pick<Sql, "unsafe">): Promise<void> {
  if (isPooled(await sql.unsafe(whichBackend))) throw behindPooler();
}

/**
 * Picks the address of the current primary from one with several hosts: for a command, which needs only one while it
 * runs, and for PostgreSQL's own tools. Returns an address with one host unchanged.
 *
 * @throws Unavailable when no server accepts writes
 */
export async function singleAddress(address: string): Promise<string> {
  try {
    return (await primaryOf(address)?.find())?.address ?? address;
  } catch (error) {
    throw operatorsError(error);
  }
}
