import { drizzle, type PostgresJsDatabase } from "drizzle-orm/postgres-js";
import { prepareInTransactions } from "./connection/prepare.ts";
import { openSql } from "./connection/sql.ts";
import { type PoolWatch, watchSql } from "./connection/watch.ts";
import * as schema from "./schema/index.ts";

export { openSql, type Sql } from "./connection/sql.ts";

export type Database = PostgresJsDatabase<typeof schema>;
export type Transaction = Parameters<Parameters<Database["transaction"]>[0]>[0];

export interface DatabaseClient {
  db: Database;
  /** What is under way has so many seconds to end; then it is rejected. */
  close(graceSeconds?: number): Promise<void>;
}

/** `connection` holds settings of PostgreSQL, valid from the first statement on; a pooler refuses most of them. */
interface OwnOptions {
  prepare?: boolean;
  fetch_types?: boolean;
  connection?: Record<string, string | number>;
}

/**
 * A pool of up to `poolSize` connections, opened when first needed. Without `prepare` nothing is prepared, whoever asks
 * for it: behind a pooler the next statement may go by another connection.
 */
export function openDatabase(
  url: string,
  poolSize: number,
  watch?: PoolWatch,
  { prepare = true, ...own }: OwnOptions = {},
): DatabaseClient {
  const client = openSql(url, { max: poolSize, idle_timeout: 300, prepare, ...own });
  if (prepare) prepareInTransactions(client);
  if (watch) watchSql(client, watch);
  return { db: drizzle(client, { schema }), close: (timeout = 5) => client.end({ timeout }) };
}
