import type { Database, Transaction } from "./client.ts";

type Asked = Database | Transaction;

/**
 * A prepared query with placeholders, built once per database. Building it takes drizzle longer than PostgreSQL takes
 * to answer. A transaction counts as a separate database here, so its queries are not reused.
 */
export function preparedQuery<Query>(make: (db: Asked) => Query): (db: Asked) => Query {
  const queries = new WeakMap<Asked, Query>();
  return (db) => {
    const known = queries.get(db);
    if (known) return known;
    const query = make(db);
    queries.set(db, query);
    return query;
  };
}
