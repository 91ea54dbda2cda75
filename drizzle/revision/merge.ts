import { Conflict } from "../../platform/errors.ts";
import { isRecord } from "../../platform/record.ts";
import { headsOf, inOrder, type Node, withAncestors } from "./history.ts";
import type { Snapshot } from "./write.ts";

/**
 * The combined schema of several heads: everything that each of them changed since they diverged.
 * @throws Conflict naming what two of them changed in different ways
 */
export async function mergeSnapshots(
  revisions: readonly Node[],
  read: (id: string) => Promise<Snapshot>,
): Promise<Snapshot> {
  const [first, ...others] = headsOf(revisions);
  const order = inOrder(revisions);
  let merged = await read(first!);
  let done = withAncestors(revisions, first!);
  for (const head of others) {
    const own = withAncestors(revisions, head);
    // The newest ancestor shared with any line merged so far.
    const common = order.findLast(({ id }) => done.has(id) && own.has(id));
    const base = common ? await read(common.id) : {};
    merged = mergeValues(base, merged, await read(head), []) as Snapshot;
    done = done.union(own);
  }
  return { ...merged, id: crypto.randomUUID() };
}

/** Three-way merge of JSON values: takes the side that changed; if both changed, merges their members. */
function mergeValues(base: unknown, left: unknown, right: unknown, path: string[]): unknown {
  if (Bun.deepEquals(left, right) || Bun.deepEquals(base, right)) return left;
  if (Bun.deepEquals(base, left)) return right;
  // Each snapshot has its own id, and the id of its predecessor.
  if (path.length === 1 && ["id", "prevId"].includes(path[0]!)) return left;
  if (!isRecord(left) || !isRecord(right)) {
    throw new Conflict(
      `The heads cannot be merged: each changes ${path.join(" ") || "the schema"} in a different way. Add a revision after one of them to make them agree`,
    );
  }
  const from = isRecord(base) ? base : {};
  const merged: Record<string, unknown> = {};
  for (const key of new Set([...Object.keys(left), ...Object.keys(right)])) {
    const value = mergeValues(from[key], left[key], right[key], [...path, key]);
    if (value !== undefined) merged[key] = value;
  }
  return merged;
}
