import { sql } from "drizzle-orm";
import type { Transaction } from "./database.ts";

/**
 * Locks a name until the transaction ends, and waits while another transaction has it. For rules that no row can hold,
 * such as a maximum of rows.
 */
export async function lockName(tx: Transaction, name: string): Promise<void> {
  await tx.execute(sql`select pg_advisory_xact_lock(hashtextextended(${name}, 0))`);
}
