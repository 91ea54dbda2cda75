import { literal, quoted } from "../sql_text.ts";
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
    const error = await tryStatement(
      sql,
      `create schema if not exists ${quoted(schema)}; create extension ${quoted(name)} schema ${quoted(schema)}`,
    );
    if (error) notice?.(`the extension ${name} of the backup's database is not installed here: ${error}`);
  }
}

/**
 * Runs a statement on the server, where an error does not abort the transaction. (postgres.js fails a transaction of
 * which a query has failed, even if a savepoint was rolled back.)
 *
 * @returns PostgreSQL's message if it failed
 */
export async function tryStatement(sql: Runner, statement: string): Promise<string> {
  await sql.unsafe(`do $svc_try$ begin
    perform set_config('svc.error', '', true);
    execute ${literal(statement)};
  exception when others then perform set_config('svc.error', sqlerrm, true);
  end $svc_try$`);
  const [row] = await sql.unsafe("select current_setting('svc.error') as error");
  return row!.error;
}
