import { readdirSync, readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Sql } from "../../../drizzle/client.ts";

/** All rows of the database as text, with bytea in hex. */
export async function databaseAsText(sql: Sql): Promise<string> {
  const tables = await sql<{ name: string }[]>`
    select format('%I.%I', schemaname, tablename) as name from pg_tables
    where schemaname not in ('pg_catalog', 'information_schema')`;
  const dumps: string[] = [];
  for (const { name } of tables) {
    const [row] = await sql.unsafe(`select coalesce(string_agg(t::text, E'\\n'), '') as text from ${name} t`);
    dumps.push(`${name}\n${row?.text}`);
  }
  return dumps.join("\n");
}

/** The log of the embedded PostgreSQL. */
export async function databaseLog(sql: Sql): Promise<string> {
  const [row] = await sql`show data_directory`;
  return await readFile(join(dirname(row!.data_directory), "postgres.log"), "utf8");
}

/** The command line of every process on this machine, as `ps` shows it. */
export function commandLines(): string[] {
  return readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      return readFileSync(`/proc/${name}/cmdline`, "utf8").split("\0").join(" ").trim() || [];
    } catch {
      // The process has exited.
      return [];
    }
  });
}
