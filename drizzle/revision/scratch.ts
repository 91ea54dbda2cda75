import { Unavailable } from "../../platform/errors.ts";
import { openSql, type Sql } from "../connection/sql.ts";
import { errorCode } from "../database_error.ts";
import { quoted } from "../sql_text.ts";
import { setUp } from "./session.ts";

/**
 * Creates an empty database beside the one that `url` names, and drops it afterwards.
 * @throws Unavailable when the user may not create a database
 */
export async function withScratchDatabase<T>(
  url: string,
  purpose: string,
  use: (url: string) => Promise<T>,
): Promise<T> {
  const name = `svc_check_${crypto.randomUUID().slice(0, 8)}`;
  const sql = openSql(url, { max: 1, fetch_types: false });
  try {
    await setUp(sql);
    await createScratch(sql, name, purpose);
    const target = new URL(url);
    target.pathname = `/${name}`;
    return await use(target.href);
  } finally {
    await sql.unsafe(`drop database if exists ${quoted(name)} with (force)`).catch(() => {});
    await sql.end({ timeout: 5 });
  }
}

async function createScratch(sql: Sql, name: string, purpose: string): Promise<void> {
  try {
    await sql.unsafe(`create database ${quoted(name)} template template0`);
  } catch (error) {
    if (errorCode(error) !== "42501") throw error;
    throw new Unavailable(`${purpose} needs the right to create a database: alter role NAME createdb`, {
      cause: error,
    });
  }
}
