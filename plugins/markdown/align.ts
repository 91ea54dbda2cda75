/** A task that we know of a document. */
export interface KnownTask {
  externalId: string;
  description: string;
  status: string;
  /** It was gone from the document. */
  deleted: boolean;
}

/** Half of the pairs of letters in common: a sentence of which a part was written anew. */
const alike = 0.5;
/** Characters of a description that are compared. */
const compared = 200;

/**
 * Which of the known tasks each written one is, so that a task stays itself when its text, its place or its mark change;
 * undefined for a new one. Each known task is at most one of the written.
 *
 * Those of the same words first (with the same mark, then with another; of several alike, in their order), then the most
 * similar. One that was gone comes back by its very words only.
 */
export function align(
  known: readonly KnownTask[],
  written: readonly { description: string; status: string }[],
): (string | undefined)[] {
  const ids: (string | undefined)[] = written.map(() => undefined);
  const free = new Set(known);
  const pairBy = (key: (task: { description: string; status: string }) => string, deleted: boolean) => {
    const byKey = new Map<string, KnownTask[]>();
    for (const task of free) {
      if (task.deleted !== deleted) continue;
      const same = byKey.get(key(task));
      if (same) same.push(task);
      else byKey.set(key(task), [task]);
    }
    for (const [at, task] of written.entries()) {
      const first = ids[at] === undefined ? byKey.get(key(task))?.shift() : undefined;
      if (first === undefined) continue;
      ids[at] = first.externalId;
      free.delete(first);
    }
  };
  pairBy(({ status, description }) => `${status} ${description}`, false);
  pairBy(({ description }) => description, false);

  const rest = [...free].filter((task) => !task.deleted).map((task) => ({ task, pairs: bigrams(task) }));
  const pairs = written.flatMap((task, at) => {
    if (ids[at] !== undefined) return [];
    const own = bigrams(task);
    return rest.map((one) => ({ at, task: one.task, score: similarity(own, one.pairs) }));
  });
  // Sorting is stable: of equals, the first stay first.
  for (const { at, task, score } of pairs.sort((a, b) => b.score - a.score)) {
    if (score < alike) break;
    if (ids[at] !== undefined || !free.has(task)) continue;
    ids[at] = task.externalId;
    free.delete(task);
  }

  pairBy(({ description }) => description, true);
  return ids;
}

interface Bigrams {
  counts: ReadonlyMap<string, number>;
  total: number;
}

function bigrams({ description }: { description: string }): Bigrams {
  const text = ` ${description.slice(0, compared).toLowerCase()} `;
  const counts = new Map<string, number>();
  for (let at = 0; at + 1 < text.length; at += 1) {
    const pair = text.slice(at, at + 2);
    counts.set(pair, (counts.get(pair) ?? 0) + 1);
  }
  return { counts, total: text.length - 1 };
}

/** Sørensen and Dice: twice the common pairs by all pairs; 1 for the same, 0 for nothing in common. */
function similarity(a: Bigrams, b: Bigrams): number {
  const [small, large] = a.counts.size <= b.counts.size ? [a, b] : [b, a];
  let common = 0;
  for (const [pair, count] of small.counts) common += Math.min(count, large.counts.get(pair) ?? 0);
  return (2 * common) / (a.total + b.total);
}
