import { drizzle, type PostgresJsDatabase } from "drizzle-orm/postgres-js";
import * as schema from "./schema/index.ts";
import { openSql } from "./sql.ts";

export { openSql, type Sql } from "./sql.ts";

export type Database = PostgresJsDatabase<typeof schema>;
export type Transaction = Parameters<Parameters<Database["transaction"]>[0]>[0];

export interface DatabaseClient {
  db: Database;
  close(): Promise<void>;
}

/** A pool of up to `poolSize` connections, opened when first needed. */
export function openDatabase(url: string, poolSize: number): DatabaseClient {
  const client = openSql(url, { max: poolSize, idle_timeout: 300 });
  return { db: drizzle(client, { schema }), close: () => client.end({ timeout: 5 }) };
}
