import type { Database, Transaction } from "../drizzle/client.ts";
import type { PluginContext } from "../core/plugin/context.ts";
import type { Fault, TaskResult } from "../core/schedule/finish.ts";

/**
 * What a task works with. `db` only reads: whatever a task writes goes through `transaction`, so a worker that has lost
 * its run (it was frozen, or cut off) changes nothing.
 */
export interface TaskContext extends Omit<PluginContext, "db"> {
  /** Outside a transaction, for reading. */
  db: Pick<Database, "select" | "selectDistinct" | "selectDistinctOn" | "$count">;
  /** When the run was due. `clock.now()` is the database's time, as all workers have it. */
  slot: Date;
  /** Aborts when the run is given up or lost: pass it to `callPlugin`, and look at it between two batches. */
  signal: AbortSignal;
  /**
   * Commits `work` only while the run is ours. One batch is one transaction; no plugin is called inside.
   * @throws Conflict when the run is lost: let it through
   */
  transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T>;
  /** Records that nothing could be done about one item, and why, in words fit to be kept; the rest goes on. */
  fault(item: Fault["item"], reason: Fault["reason"]): void;
  /**
   * The same of an item of which nothing could be done yet, since somebody else had it locked: the run ends, and is made
   * again while its slot lasts. Then it is a fault.
   */
  postpone(item: Fault["item"], reason: Fault["reason"]): void;
}

/**
 * The work of a task of the schedule. It may begin again after a crash: an effect in the database has a key, or a state
 * that it expects, by which it happens once. It throws when it can do nothing at all; one bad item is a `fault`.
 */
export interface ScheduledTask {
  run(context: TaskContext): Promise<TaskResult>;
}
