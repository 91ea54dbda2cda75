import pLimit from "p-limit";
import { withTimeLimit } from "./time_limit.ts";

/**
 * Enough that a few hanging tasks do not block others, and few enough to leave requests their share of the database.
 */
const worksAtOnce = 16;

/** Tracks a program's work outside requests, until the program stops. */
export class Background {
  readonly #controller = new AbortController();
  readonly #running = new Set<Promise<void>>();
  readonly #inTurn = pLimit(worksAtOnce);

  /** Aborts when the program stops. */
  readonly signal: AbortSignal = this.#controller.signal;

  /** Keeps the program running until `work` has ended. `work` must not reject. */
  add(work: Promise<void>): void {
    this.#running.add(work);
    void work.finally(() => this.#running.delete(work));
  }

  /** Whether work that is added in turn would wait for other work. */
  get isFull(): boolean {
    return this.#inTurn.activeCount >= worksAtOnce;
  }

  /** Adds work that requests may cause in any amount: it waits for a free slot. */
  addInTurn(work: () => Promise<void>): Promise<void> {
    const turn = this.#inTurn(work);
    this.add(turn);
    return turn;
  }

  /** Aborts all work and waits until it has ended, up to this limit: the database may be unreachable. */
  async stop(milliseconds = 2000): Promise<void> {
    this.#controller.abort();
    await withTimeLimit(milliseconds, Promise.all(this.#running));
  }
}
