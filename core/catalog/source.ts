import { sql } from "drizzle-orm";
import type { Transaction } from "../../drizzle/client.ts";
import { Conflict } from "../../platform/errors.ts";
import type { Plugins } from "../plugin/choose.ts";
import type { Resource } from "./resource.ts";

/** What a person may not change, since the next look at its source would change it back. */
export function comesFromSource(one: string, { source }: { source: string | null }): Conflict {
  return new Conflict(`This ${one} comes from ${source}: change it there`);
}

/**
 * What a person may not delete, since the next look at its source would bring it back. A source that is chosen no more
 * brings nothing back: what it left is an admin's to clear away.
 *
 * @throws Conflict
 */
export function unlessListed(
  { one, listedBy }: Pick<Resource, "one" | "listedBy">,
  { source }: { id: number; source?: unknown },
  plugins: Plugins,
): void {
  if (!listedBy || typeof source !== "string" || !plugins.find(listedBy, source)) return;
  throw new Conflict(`This ${one} comes from ${source}, which would bring it back: delete it there`);
}

/** Keeps the records of a source as they are until the transaction ends: whoever has taken it writes them, one at a time. */
export async function lockSource(tx: Transaction, source: string): Promise<void> {
  await tx.execute(sql`select pg_advisory_xact_lock(hashtextextended(${`source ${source}`}, 0))`);
}
