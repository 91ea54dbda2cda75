import { sql } from "drizzle-orm";
import type { Transaction } from "../../drizzle/client.ts";
import { Conflict } from "../errors.ts";

/** What a person may not change, since the next look at its source would change it back. */
export function comesFromSource(one: string, { source }: { source: string | null }): Conflict {
  return new Conflict(`This ${one} comes from ${source}: change it there`);
}

/** Keeps the records of a source as they are until the transaction ends: whoever has taken it writes them, one at a time. */
export async function lockSource(tx: Transaction, source: string): Promise<void> {
  await tx.execute(sql`select pg_advisory_xact_lock(hashtextextended(${`source ${source}`}, 0))`);
}
