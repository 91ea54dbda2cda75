import type { Transaction } from "../../drizzle/client.ts";
import { lockName } from "../../drizzle/lock_name.ts";
import { Conflict } from "../../platform/errors.ts";
import type { Plugins } from "../plugin/choose.ts";
import type { Resource } from "./resource.ts";

/** The error for a record that a person may not change, because the next sync would change it back. */
export function comesFromSource(one: string, { source }: { source: string | null }): Conflict {
  return new Conflict(`This ${one} comes from ${source}: change it there`);
}

/**
 * Refuses to delete a record that the next sync would restore. A source that is no longer enabled restores nothing, so
 * an admin may delete what it left.
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

/** Locks the records of a source until the transaction ends, so that only one transaction writes them at a time. */
export async function lockSource(tx: Transaction, source: string): Promise<void> {
  await lockName(tx, `source ${source}`);
}
