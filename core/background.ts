/** What a program does beside its requests, until it stops. */
export class Background {
  readonly #controller = new AbortController();
  readonly #running = new Set<Promise<void>>();

  /** Aborts when the program stops. */
  readonly signal: AbortSignal = this.#controller.signal;

  /** Keeps the program from ending before `work` has, which throws nothing. */
  add(work: Promise<void>): void {
    this.#running.add(work);
    void work.finally(() => this.#running.delete(work));
  }

  /** Tells all work to end, and waits until it has, but no longer than that: the database may be away. */
  async stop(milliseconds = 2000): Promise<void> {
    this.#controller.abort();
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, milliseconds);
    await Promise.race([Promise.all(this.#running), late]);
    clearTimeout(timer);
  }
}
