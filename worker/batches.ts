import type { Transaction } from "../drizzle/client.ts";
import type { Fault, TaskResult } from "../core/schedule/finish.ts";
import { workOnItem } from "./item.ts";
import type { TaskContext } from "./task.ts";

/** What a batch came to, with the items of which nothing could be done. */
export interface BatchResult {
  done: number;
  skipped: number;
  faults: Fault[];
}

const size = 200;

/**
 * Works on records in the order of their ids, a batch in a transaction. Where that fails, each of them is tried by
 * itself, so that a bad one is recorded and the others are not lost with it.
 */
export async function inBatches(
  context: TaskContext,
  items: {
    /** The next ids behind this one. */
    find: (last: number, limit: number) => Promise<number[]>;
    /** As a person knows it: `incident 7`. */
    nameOf: (id: number) => string;
    work: (tx: Transaction, ids: readonly number[]) => Promise<BatchResult>;
  },
): Promise<TaskResult> {
  const { transaction, fault, signal } = context;
  const total = { done: 0, skipped: 0, failed: 0 };
  const add = ({ done, skipped, faults }: BatchResult) => {
    total.done += done;
    total.skipped += skipped;
    total.failed += faults.length;
    for (const { item, reason } of faults) fault(item, reason);
  };
  const one = async (id: number) => {
    const answer = await workOnItem(context, items.nameOf(id), () =>
      transaction((tx) => items.work(tx, [id])),
    );
    if ("value" in answer) add(answer.value);
    else total.failed += 1;
  };
  for (let last = 0; ;) {
    signal.throwIfAborted();
    const ids = await items.find(last, size);
    try {
      if (ids.length > 0) add(await transaction((tx) => items.work(tx, ids)));
    } catch {
      for (const id of ids) await one(id);
    }
    if (ids.length < size) return total;
    last = ids.at(-1)!;
  }
}
