import postgres from "postgres";
import { endWithConnection } from "./lost.ts";

/** A client for raw SQL. Never one that drizzle() was given: drizzle changes how it reads and writes times. */
export type Sql = postgres.Sql;

/** A client for raw SQL, LISTEN and schema changes. Apart from client.ts, so that these load no tables. */
export function openSql(url: string, options: postgres.Options<Record<string, never>> = {}): Sql {
  const name = decodeURIComponent(new URL(url).pathname.slice(1));
  const client = postgres(url, {
    // postgres.js takes the name as it stands, PostgreSQL's own tools decode it.
    ...(name === "" ? {} : { database: name }),
    onnotice: () => {},
    connect_timeout: 10,
    backoff,
    connection: { application_name: "svc" },
    ...options,
  });
  endWithConnection(client);
  return client;
}

/**
 * Seconds until a connection is tried again. By itself postgres.js waits for up to 20 s, and counts the failures of all
 * connections of a pool: behind an outage nobody would have the database back for as long.
 */
function backoff(failures: number): number {
  return (0.5 + Math.random() / 2) * Math.min(2 ** failures / 100, 0.5);
}
