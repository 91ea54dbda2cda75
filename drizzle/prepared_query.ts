import type { Database, Transaction } from "./client.ts";

type Asked = Database | Transaction;

/**
 * A query with placeholders, prepared: made once for each database that asks it. To make it anew takes drizzle longer than
 * PostgreSQL takes to answer. A transaction is a database of its own here, and keeps nothing for the next.
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
