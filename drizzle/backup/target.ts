import type { Sql } from "../client.ts";
import { createDatabase, databaseExists, maintenanceUrl } from "../revision/create_database.ts";
import { ask } from "../revision/session.ts";
import { quoted } from "../sql_text.ts";
import type { ServerAddress } from "./container.ts";
import { majorVersion, withSession } from "./session.ts";
import { serverOf } from "./tool_process.ts";

/** The destination of a backup. */
export interface Target {
  exists: boolean;
  /** The server's version. */
  major: number;
  server: ServerAddress;
}

export async function describeTarget(url: string, signal?: AbortSignal): Promise<Target> {
  const exists = await databaseExists(url);
  const about = async (sql: Sql) => ({ major: await majorVersion(sql), server: serverOf(sql) });
  return { exists, ...(await withSession(exists ? url : maintenanceUrl(url), signal, about)) };
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
  await ask(maintenanceUrl(url), (sql) => sql.unsafe(`drop database if exists ${quoted(name)}`));
}
