import { openSql, type Sql } from "../../drizzle/sql.ts";
import { operatorsError } from "../database_error.ts";

/** Asks a database something, on a connection of its own. @throws Unavailable when PostgreSQL does not answer or refuses us */
export async function ask<T>(url: string, question: (sql: Sql) => Promise<T>): Promise<T> {
  const sql = openSql(url, { max: 1, fetch_types: false });
  try {
    return await question(sql);
  } catch (error) {
    throw operatorsError(error);
  } finally {
    await sql.end({ timeout: 5 });
  }
}
