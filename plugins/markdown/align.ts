/** A known task of a document. */
export interface KnownTask {
  externalId: string;
  description: string;
  status: string;
  /** Whether it was deleted from the document. */
  deleted: boolean;
}

/** Half of the letter pairs in common: a sentence that was partly rewritten. */
const alike = 0.5;
/** The number of characters of a description to compare. */
const compared = 200;

/**
 * Matches the written tasks with the known ones, so that a task keeps its id when its text, place or mark changes. The
 * result is undefined for a new task. Each known task matches at most one written task.
 *
 * Tasks with the same text match first (with the same mark, then with another; equal ones in their order), then the most
 * similar ones. A deleted task comes back only with exactly the same text.
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
  // Sorting is stable, so equals keep their order.
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

/** The Sørensen-Dice coefficient: twice the common pairs divided by all pairs; 1 if equal, 0 if nothing is in common. */
function similarity(a: Bigrams, b: Bigrams): number {
  const [small, large] = a.counts.size <= b.counts.size ? [a, b] : [b, a];
  let common = 0;
  for (const [pair, count] of small.counts) common += Math.min(count, large.counts.get(pair) ?? 0);
  return (2 * common) / (a.total + b.total);
}
