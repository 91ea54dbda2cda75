import { is } from "drizzle-orm";
import { PgTransaction } from "drizzle-orm/pg-core";
import type { Database, Transaction } from "../drizzle/client.ts";

/** Runs work in this transaction, or in one of its own. If it fails, all of the transaction is rolled back. */
export async function inTransaction<T>(
  db: Database | Transaction,
  work: (tx: Transaction) => Promise<T>,
): Promise<T> {
  return await (is(db, PgTransaction) ? work(db as Transaction) : db.transaction(work));
}
