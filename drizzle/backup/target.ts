import { createDatabase, maintenanceUrl } from "../revision/create_database.ts";
import { ask } from "../revision/session.ts";
import { quoted } from "../sql_text.ts";

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
