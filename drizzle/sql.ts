import postgres from "postgres";

/** A client for raw SQL. Never one that drizzle() was given: drizzle changes how it reads and writes times. */
export type Sql = postgres.Sql;

/** A client for raw SQL, LISTEN and schema changes. Apart from client.ts, so that these load no tables. */
export function openSql(url: string, options: postgres.Options<Record<string, never>> = {}): Sql {
  const name = decodeURIComponent(new URL(url).pathname.slice(1));
  return postgres(url, {
    // postgres.js takes the name as it stands, PostgreSQL's own tools decode it.
    ...(name === "" ? {} : { database: name }),
    onnotice: () => {},
    connect_timeout: 10,
    connection: { application_name: "svc" },
    ...options,
  });
}
