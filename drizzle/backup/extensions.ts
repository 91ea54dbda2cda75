import { errorCode } from "../database_error.ts";
import { quoted } from "../sql_text.ts";
import type { Extension, Runner } from "./inventory.ts";

/**
 * Installs the extensions of the backup's database that are missing here, as far as this user may. Reports one that
 * cannot be installed; the backup may not need it.
 */
export async function provideExtensions(
  sql: Runner,
  extensions: readonly Extension[],
  notice?: (message: string) => void,
): Promise<void> {
  const rows = await sql.unsafe("select extname as name from pg_extension");
  const there = new Set(rows.map(({ name }) => name));
  for (const { name, schema } of extensions.filter((one) => !there.has(one.name))) {
    await sql.unsafe("savepoint extension");
    try {
      await sql.unsafe(
        `create schema if not exists ${quoted(schema)}; create extension ${quoted(name)} schema ${quoted(schema)}`,
      );
    } catch (error) {
      if (errorCode(error) === undefined) throw error;
      await sql.unsafe("rollback to savepoint extension");
      notice?.(
        `the extension ${name} of the backup's database is not installed here: ${(error as Error).message}`,
      );
    }
    await sql.unsafe("release savepoint extension");
  }
}
