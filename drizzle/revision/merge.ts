import { Conflict, SvcError } from "../../platform/errors.ts";
import { isRecord } from "../../platform/record.ts";
import { canonicalSchema, difference } from "./canonical.ts";
import { headsOf, inOrder, type Node, type Revision, withAncestors } from "./history.ts";
import { withScratchDatabase } from "./scratch.ts";
import { ask } from "./session.ts";
import { applyEach, upgrade } from "./upgrade.ts";
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

const advice = (head: string) =>
  `Make one follow the other: delete drizzle/revisions/${head} and write it again with svc database revision, after the one it conflicts with`;

/**
 * Applies the heads to empty databases, with each head first once, since a database may be at any of them. All have to
 * end in the same schema.
 *
 * @throws Conflict when they do not; Unavailable when the user may not create a database
 */
export async function tryOrders(url: string, revisions: readonly Revision[]): Promise<void> {
  const heads = headsOf(revisions);
  const results: { order: string[]; schema: string }[] = [];
  for (const first of heads) {
    const order = [first, ...heads.filter((head) => head !== first)];
    const schema = await withScratchDatabase(url, "svc database merge", async (scratch) => {
      for (const [at, head] of order.entries()) {
        await applyAfter(scratch, revisions, head, order.slice(0, at));
      }
      return ask(scratch, canonicalSchema);
    });
    results.push({ order, schema });
  }
  await withScratchDatabase(url, "svc database merge", (scratch) => applyEach(scratch, revisions));
  const [one, ...others] = results;
  for (const { order, schema } of others) {
    const lines = difference(one!.schema, schema);
    if (lines.length === 0) continue;
    throw new Conflict(
      [
        `The heads cannot be merged: ${order.join(", ")} give a different schema than ${one!.order.join(", ")}:`,
        ...lines.slice(0, 10).map((line) => `  ${line.split("\n", 1)[0]}`),
        advice(order[0]!),
      ].join("\n"),
    );
  }
}

async function applyAfter(
  url: string,
  revisions: readonly Revision[],
  head: string,
  before: readonly string[],
): Promise<void> {
  try {
    await upgrade({ url, revisions, target: head, allowDataLoss: true });
  } catch (error) {
    if (!(error instanceof SvcError) || error.code !== "configuration") throw error;
    const where = before.length === 0 ? "by itself" : `after ${before.join(", ")}`;
    const [line = "", statement = ""] = error.detail.split("\n");
    throw new Conflict(
      [
        `The heads cannot be merged: ${head} cannot be applied ${where}`,
        ...[line, statement].map((text) => `  ${text}`),
        advice(head),
      ].join("\n"),
      { cause: error },
    );
  }
}
