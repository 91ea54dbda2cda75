import { Unavailable } from "../../platform/errors.ts";
import { errorCode } from "../database_error.ts";
import { quoted } from "../sql_text.ts";
import { ask } from "./session.ts";

/**
 * Creates the database that a URL names, if it does not exist.
 *
 * @returns its name if it was missing
 * @throws Unavailable
 */
export async function createDatabase(url: string): Promise<string | undefined> {
  const name = decodeURIComponent(new URL(url).pathname.slice(1));
  if (name === "")
    throw new Unavailable("SVC_DATABASE_URL names no database: postgres://user:password@host/name");
  if (await databaseExists(url)) return undefined;
  return ask(maintenanceUrl(url), async (sql) => {
    try {
      await sql.unsafe(`create database ${quoted(name)} encoding 'UTF8' template template0`);
      return name;
    } catch (error) {
      // 42P04, 23505: another session created it first.
      if (["42P04", "23505"].includes(errorCode(error) ?? "")) return undefined;
      if (errorCode(error) !== "42501") throw error;
      const detail = `PostgreSQL does not let this user create the database ${name}: let an administrator create it, or: alter role NAME createdb`;
      throw new Unavailable(detail, { cause: error });
    }
  });
}

/** The address of the database that every server has. */
export function maintenanceUrl(url: string): string {
  return Object.assign(new URL(url), { pathname: "/postgres" }).href;
}

export async function databaseExists(url: string): Promise<boolean> {
  try {
    await ask(url, (sql) => sql`select 1`);
    return true;
  } catch (error) {
    if (errorCode((error as Error).cause) === "3D000") return false;
    throw error;
  }
}
