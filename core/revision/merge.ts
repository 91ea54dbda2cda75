import { Conflict } from "../errors.ts";
import { headsOf, inOrder, type Node, withAncestors } from "./graph.ts";
import type { Snapshot } from "./write.ts";

/** What both lines have in common and joined last; undefined where they began apart. */
function commonAncestor(revisions: readonly Node[], left: string, right: string): string | undefined {
  const [a, b] = [withAncestors(revisions, left), withAncestors(revisions, right)];
  return inOrder([...revisions]).findLast(({ id }) => a.has(id) && b.has(id))?.id;
}

/**
 * The schema of several heads together: what each of them changed since they parted.
 * @throws Conflict naming what two of them changed in different ways
 */
export async function mergeSnapshots(
  revisions: readonly Node[],
  read: (id: string) => Promise<Snapshot>,
): Promise<Snapshot> {
  const [first, ...others] = headsOf(revisions);
  const order = inOrder([...revisions]).map(({ id }) => id);
  let merged = await read(first!);
  const done = [first!];
  for (const head of others) {
    // The last that it has in common with any line that is merged already.
    const common = done
      .flatMap((other) => commonAncestor(revisions, other, head) ?? [])
      .sort((a, b) => order.indexOf(b) - order.indexOf(a))[0];
    const base = common === undefined ? {} : await read(common);
    merged = mergeValues(base, merged, await read(head), []) as Snapshot;
    done.push(head);
  }
  return { ...merged, id: crypto.randomUUID() };
}

/** Of three JSON values: the side that changed; where both changed, what is in them, one by one. */
function mergeValues(base: unknown, left: unknown, right: unknown, path: string[]): unknown {
  if (Bun.deepEquals(left, right) || Bun.deepEquals(base, right)) return left;
  if (Bun.deepEquals(base, left)) return right;
  // Each snapshot has its own id, and the id of the one before.
  if (path.length === 1 && ["id", "prevId"].includes(path[0]!)) return left;
  if (!isObject(left) || !isObject(right)) {
    throw new Conflict(
      `The heads cannot be merged: each changes ${path.join(" ") || "the schema"} in its own way. Make one of them agree by a revision of its own`,
    );
  }
  const from = isObject(base) ? base : {};
  const merged: Record<string, unknown> = {};
  for (const key of new Set([...Object.keys(left), ...Object.keys(right)])) {
    const value = mergeValues(from[key], left[key], right[key], [...path, key]);
    if (value !== undefined) merged[key] = value;
  }
  return merged;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
