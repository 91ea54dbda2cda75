import type { SQL } from "drizzle-orm";
import { PgDialect } from "drizzle-orm/pg-core";
import type { Database, Transaction } from "../../drizzle/client.ts";

const dialect = new PgDialect();

/**
 * Sends a statement that each connection prepares once. It is for what all workers send at the same moment, and is
 * written as text: to put it together out of parts takes as long as PostgreSQL needs to run it. Rows come as PostgreSQL
 * writes them, so times are texts.
 */
export function sendPrepared<Row>(db: Database | Transaction, name: string, statement: SQL): Promise<Row[]> {
  const { session } = db._;
  const query = dialect.sqlToQuery(statement);
  return session
    .prepareQuery<{ execute: Row[]; all: Row[]; values: never }>(query, undefined, name, false)
    .execute();
}
