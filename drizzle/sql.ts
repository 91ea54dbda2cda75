import postgres from "postgres";
import { readAddress } from "./address.ts";
import { endWithConnection } from "./lost.ts";

/** A client for raw SQL. Never one that drizzle() was given: drizzle changes how it reads and writes times. */
export type Sql = postgres.Sql;

/** A client for raw SQL, LISTEN and schema changes. Apart from client.ts, so that these load no tables. */
export function openSql(address: string, options: postgres.Options<Record<string, never>> = {}): Sql {
  const { url, ssl, hasTimeout } = readAddress(address);
  const name = decodeURIComponent(new URL(url).pathname.slice(1));
  const client = postgres(url, {
    ...(ssl === undefined ? {} : { ssl }),
    ...(hasTimeout ? {} : { connect_timeout: 10 }),
    // postgres.js takes the name as it stands, PostgreSQL's own tools decode it.
    ...(name === "" ? {} : { database: name }),
    onnotice: () => {},
    // Bun goes on to what follows from a connection's end when something else happens: whoever asks meanwhile would write
    // to where there is no socket any more (drizzle/lost.ts).
    onclose: () => void setImmediate(() => {}),
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
