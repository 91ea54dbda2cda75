import { drizzle, type PostgresJsDatabase } from "drizzle-orm/postgres-js";
import postgres from "postgres";
import * as schema from "./schema/index.ts";

export type Database = PostgresJsDatabase<typeof schema>;
export type Transaction = Parameters<Parameters<Database["transaction"]>[0]>[0];
/** A client for raw SQL. Never one that drizzle() was given: drizzle changes how it reads and writes times. */
export type Sql = postgres.Sql;

export interface DatabaseClient {
  db: Database;
  close(): Promise<void>;
}

/** A pool of up to `poolSize` connections, opened when first needed. */
export function openDatabase(url: string, poolSize: number): DatabaseClient {
  const client = openSql(url, { max: poolSize, idle_timeout: 300 });
  return { db: drizzle(client, { schema }), close: () => client.end({ timeout: 5 }) };
}

/** A client for raw SQL, LISTEN and schema changes. */
export function openSql(url: string, options: postgres.Options<Record<string, never>> = {}): Sql {
  return postgres(url, {
    onnotice: () => {},
    connect_timeout: 10,
    connection: { application_name: "svc" },
    ...options,
  });
}
