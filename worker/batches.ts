import type { Fault, TaskResult } from "../core/schedule/runs.ts";
import { waitBriefly } from "../core/sync/savepoints.ts";
import type { Transaction } from "../drizzle/client.ts";
import { transience } from "../drizzle/database_error.ts";
import { endsRun, lockedReason, recordFailure, type TaskContext } from "./task.ts";
import { pause } from "./time.ts";

/** The result of a batch, with the items that could not be processed. */
export interface BatchResult {
  done: number;
  skipped: number;
  faults: Fault[];
  /** Items that another transaction had locked and the batch skipped. They are retried. */
  locked?: readonly number[];
}

const defaultSize = 200;
/** With more locked records than this, somebody has probably locked the table: the run ends and is retried later. */
const mostLocked = 100;
/** Milliseconds to wait before each retry of locked items within a run. */
const pauses = [100, 200, 400, 800, 1600];

interface Batches {
  /** Returns the next ids after `last`. */
  find: (last: number, limit: number) => Promise<number[]>;
  /** The item's display name: `incident 7`. */
  nameOf: (id: number) => string;
  work: (tx: Transaction, ids: readonly number[]) => Promise<BatchResult>;
  /** The batch size. */
  size?: number;
}

/**
 * Processes records in id order, one transaction per batch. If a batch fails, each half is retried separately, so that
 * a bad record is isolated and recorded without losing the others. Locked records are retried last, with increasing
 * pauses; those still locked after that are postponed.
 */
export async function inBatches(context: TaskContext, items: Batches): Promise<TaskResult> {
  const { transaction, fault, signal } = context;
  const { find, nameOf, work, size = defaultSize } = items;
  const total = { done: 0, skipped: 0, failed: 0 };
  const locked: number[] = [];
  const together = async (ids: readonly number[]) => {
    const part = await transaction(async (tx) => {
      await waitBriefly(tx);
      return work(tx, ids);
    });
    total.done += part.done;
    total.skipped += part.skipped;
    total.failed += part.faults.length;
    for (const { item, reason } of part.faults) fault(item, reason);
    locked.push(...(part.locked ?? []));
  };
  const alone = (id: number, error: unknown) => {
    if (transience(error) === "contention") {
      if (locked.length === mostLocked) throw error;
      locked.push(id);
    } else {
      recordFailure(context, nameOf(id), error);
      total.failed += 1;
    }
  };
  for (let last = 0; ;) {
    signal.throwIfAborted();
    const ids = await find(last, size);
    await byHalves(signal, ids, together, alone);
    if (ids.length < size) break;
    last = ids.at(-1)!;
  }
  for (const milliseconds of pauses) {
    if (locked.length === 0) break;
    await pause(milliseconds, signal);
    signal.throwIfAborted();
    const again = locked.splice(0);
    for (let at = 0; at < again.length; at += size)
      await byHalves(signal, again.slice(at, at + size), together, alone);
  }
  for (const id of locked) context.postpone(nameOf(id), lockedReason);
  total.failed += locked.length;
  return total;
}

/**
 * Processes items together. If that fails, it retries each half, down to single items.
 *
 * @throws the error, if it ends the run
 */
export async function byHalves<T>(
  signal: AbortSignal,
  items: readonly T[],
  together: (part: readonly T[]) => Promise<void>,
  alone: (item: T, error: unknown) => void,
): Promise<void> {
  if (items.length === 0) return;
  try {
    await together(items);
  } catch (error) {
    if (endsRun(error, signal)) throw error;
    if (items.length === 1) return alone(items[0]!, error);
    const middle = Math.ceil(items.length / 2);
    await byHalves(signal, items.slice(0, middle), together, alone);
    await byHalves(signal, items.slice(middle), together, alone);
  }
}
