import { sql } from "drizzle-orm";
import type { Fault, TaskResult } from "../core/schedule/runs.ts";
import type { Transaction } from "../drizzle/client.ts";
import { transience } from "../drizzle/database_error.ts";
import { endsRun, lockedReason, recordFailure, type TaskContext } from "./task.ts";
import { pause } from "./time.ts";

/** What a batch came to, with the items of which nothing could be done. */
export interface BatchResult {
  done: number;
  skipped: number;
  faults: Fault[];
  /** Items that somebody else had locked, if the batch did not wait for them: they are tried again. */
  locked?: readonly number[];
}

const defaultSize = 200;
/** A batch waits so long for a row that somebody else holds: a short while, since it comes back to that one. */
const lockWait = "100ms";
/** Where more are locked than that, somebody holds the table: the run ends, and is tried again later. */
const mostLocked = 100;
/** Before items that were locked are tried again in the same run. */
const pauses = [100, 200, 400, 800, 1600];

interface Batches {
  /** The next ids behind this one. */
  find: (last: number, limit: number) => Promise<number[]>;
  /** As a person knows it: `incident 7`. */
  nameOf: (id: number) => string;
  work: (tx: Transaction, ids: readonly number[]) => Promise<BatchResult>;
  /** Of a batch. */
  size?: number;
}

/**
 * Works on records in the order of their ids, a batch in a transaction. Where that fails, each half of it is tried by
 * itself, so that a bad record is found and recorded, and the others are not lost with it. Those that somebody has locked
 * come last, and once more a little later; what is still locked then is postponed.
 */
export async function inBatches(context: TaskContext, items: Batches): Promise<TaskResult> {
  const { transaction, fault, signal } = context;
  const { find, nameOf, work, size = defaultSize } = items;
  const total = { done: 0, skipped: 0, failed: 0 };
  const locked: number[] = [];
  const together = async (ids: readonly number[]) => {
    const part = await transaction(async (tx) => {
      await tx.execute(sql`select set_config('lock_timeout', ${lockWait}, true)`);
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
 * Works on items together; where that fails, on each half of them, down to those that cannot be done even alone.
 *
 * @throws what ends the run
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
