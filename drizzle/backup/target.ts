import type { Sql } from "../client.ts";
import { createDatabase } from "../revision/create_database.ts";
import { type DatabaseDescription, describeDatabase } from "../revision/drop.ts";
import { ask } from "../revision/session.ts";
import { quoted } from "../sql_text.ts";
import type { ServerAddress } from "./container.ts";
import { majorVersion, withSession } from "./session.ts";
import { serverOf } from "./tool_process.ts";

/** The destination of a backup. */
export interface Target {
  /** Undefined if it does not exist. */
  database?: DatabaseDescription;
  /** The server's version. */
  major: number;
  server: ServerAddress;
}

export async function describeTarget(url: string, signal?: AbortSignal): Promise<Target> {
  const database = await describeDatabase(url).catch((error: unknown) => {
    const { cause } = error as { cause?: { code?: unknown } };
    if (cause?.code === "3D000") return undefined;
    throw error;
  });
  const about = async (sql: Sql) => ({ major: await majorVersion(sql), server: serverOf(sql) });
  return { database, ...(await withSession(database ? url : maintenance(url), signal, about)) };
}

/** The URL of the database that every server has. */
function maintenance(url: string): string {
  const server = new URL(url);
  server.pathname = "/postgres";
  return server.href;
}

/** Whether a backup that creates these schemas, besides `public`, would replace anything. */
export async function holdsAnything(
  url: string,
  { objects }: DatabaseDescription,
  schemas: readonly string[],
): Promise<boolean> {
  if (objects > 0) return true;
  if (schemas.length === 0) return false;
  return withSession(url, undefined, async (sql) => {
    const names = JSON.stringify(schemas);
    const found = await sql`
      select from pg_namespace where nspname in (select jsonb_array_elements_text(${names}::text::jsonb))`;
    return found.length > 0;
  });
}

/** Creates the database first, and drops it if `work` fails. */
export async function creating<T>(url: string, missing: boolean, work: () => Promise<T>): Promise<T> {
  const created = missing ? await createDatabase(url) : undefined;
  try {
    return await work();
  } catch (error) {
    if (created !== undefined) await dropDatabase(url, created).catch(() => {});
    throw error;
  }
}

async function dropDatabase(url: string, name: string): Promise<void> {
  await ask(maintenance(url), (sql) => sql.unsafe(`drop database if exists ${quoted(name)}`));
}
