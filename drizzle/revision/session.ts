import { isPooled, whichBackend } from "../connection/pooler.ts";
import { openSql, type Sql } from "../connection/sql.ts";
import { operatorsError } from "../database_error.ts";
import { settings } from "./lock.ts";

/** Queries a database on a separate connection. @throws Unavailable when PostgreSQL does not answer or refuses us */
export async function ask<T>(url: string, question: (sql: Sql) => Promise<T>): Promise<T> {
  const sql = openSql(url, { max: 1 });
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
 * Applies the settings that our statements rely on, whatever the role or the database presets. Skipped behind a pooler:
 * it supplies them itself, and ours would stay with a connection that another client uses next.
 */
export async function setUp(sql: Sql): Promise<void> {
  if (!isPooled(await sql.unsafe(whichBackend))) await sql.unsafe(settings);
}
