import { openSql, type Sql } from "../client.ts";
import { refusePooler } from "../connection/database_address.ts";
import { settings } from "../revision/lock.ts";

/**
 * Opens a connection that is never closed for its age or idleness, but is cut when `signal` aborts: the running
 * statement then fails, and the server rolls back.
 *
 * @throws the signal's reason once it has aborted, whatever the outcome of `work`; Unavailable behind a pooler, which
 * does not keep a connection that long
 */
export async function withSession<T>(
  url: string,
  signal: AbortSignal | undefined,
  work: (sql: Sql) => Promise<T>,
): Promise<T> {
  const sql = openSql(url, { max: 1, max_lifetime: null, idle_timeout: undefined });
  try {
    const result = await cutOnAbort(sql, signal, async () => {
      await refusePooler(sql);
      await sql.unsafe(settings);
      return work(sql);
    });
    await sql.end({ timeout: 5 });
    return result;
  } catch (error) {
    // Does not wait for running queries: one may be a COPY whose rows are no longer read.
    await sql.end({ timeout: 0 });
    throw error;
  }
}

/** The same for a connection opened by the caller. */
export async function cutOnAbort<T>(
  sql: Pick<Sql, "end">,
  signal: AbortSignal | undefined,
  work: () => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted();
  const cut = () => void sql.end({ timeout: 0 });
  signal?.addEventListener("abort", cut, { once: true });
  try {
    return await work();
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  } finally {
    signal?.removeEventListener("abort", cut);
  }
}
