import { isPooled, whichBackend } from "../connection/pooler.ts";
import { openSql, type Sql } from "../connection/sql.ts";
import { operatorsError } from "../database_error.ts";
import { settings } from "./lock.ts";

/** Asks a database something, on a connection of its own. @throws Unavailable when PostgreSQL does not answer or refuses us */
export async function ask<T>(url: string, question: (sql: Sql) => Promise<T>): Promise<T> {
  const sql = openSql(url, { max: 1, fetch_types: false });
  try {
    await setUp(sql);
    return await question(sql);
  } catch (error) {
    throw operatorsError(error);
  } finally {
    await sql.end({ timeout: 5 });
  }
}

/**
 * Gives a connection the settings that our statements rely on, whatever the role or the database presets. Behind a pooler
 * it has them from the pooler, and they would stay with a connection that is somebody else's next.
 */
export async function setUp(sql: Sql): Promise<void> {
  if (!isPooled(await sql.unsafe(whichBackend))) await sql.unsafe(settings);
}
