import { openDatabase, openSql } from "../../drizzle/client.ts";
import { errorCode, operatorsError } from "../database_error.ts";
import { Unavailable } from "../errors.ts";
import { ask } from "../revision/session.ts";
import { quoted } from "../revision/sql_text.ts";
import { type ChangeOptions, upgrade, type UpgradeResult } from "../revision/upgrade.ts";
import { populate, type Populated } from "./populate.ts";

export interface InitResult extends UpgradeResult, Populated {
  /** The database's name, if it was not there before. */
  database?: string;
}

/**
 * Makes a database ready from nothing: creates it, brings it to head, installs the triggers, writes the defaults. On a
 * ready one it finds nothing to do. Safe to run from several machines at once.
 *
 * @throws Unavailable when PostgreSQL refuses us, or does not let us create a database; see also `upgrade`
 */
export async function init(options: ChangeOptions): Promise<InitResult> {
  const database = await createDatabase(options.url);
  const upgraded = await upgrade(options);
  const { db, close } = openDatabase(options.url, 1, undefined, { fetch_types: false });
  try {
    return { ...upgraded, ...(await populate(db)), ...(database === undefined ? {} : { database }) };
  } finally {
    await close();
  }
}

/** @returns its name if it was missing */
export async function createDatabase(url: string): Promise<string | undefined> {
  const server = new URL(url);
  const name = decodeURIComponent(server.pathname.slice(1));
  if (name === "")
    throw new Unavailable("SVC_DATABASE_URL names no database: postgres://user:password@host/name");
  if (await exists(url)) return undefined;
  server.pathname = "/postgres";
  const sql = openSql(server.href, { max: 1, fetch_types: false });
  try {
    await sql.unsafe("set statement_timeout = 0");
    await sql.unsafe(`create database ${quoted(name)} encoding 'UTF8' template template0`);
    return name;
  } catch (error) {
    // 42P04, 23505: somebody else was faster.
    if (["42P04", "23505"].includes(errorCode(error) ?? "")) return undefined;
    if (errorCode(error) === "42501") {
      const detail = `PostgreSQL does not let this user create the database ${name}: let an administrator create it, or: alter role NAME createdb`;
      throw new Unavailable(detail, { cause: error });
    }
    throw operatorsError(error);
  } finally {
    await sql.end({ timeout: 5 });
  }
}

async function exists(url: string): Promise<boolean> {
  try {
    await ask(url, (sql) => sql`select 1`);
    return true;
  } catch (error) {
    if (errorCode((error as Error).cause) === "3D000") return false;
    throw error;
  }
}
