/** Enough that some which hang keep no others waiting, and few enough to leave requests their share of the database. */
const worksAtOnce = 16;

/** What a program does beside its requests, until it stops. */
export class Background {
  readonly #controller = new AbortController();
  readonly #running = new Set<Promise<void>>();
  /** How many more may begin now; and those that wait for one to end, in the order in which they came. */
  #free = worksAtOnce;
  readonly #waiting: (() => void)[] = [];

  /** Aborts when the program stops. */
  readonly signal: AbortSignal = this.#controller.signal;

  /** Keeps the program from ending before `work` has, which throws nothing. */
  add(work: Promise<void>): void {
    this.#running.add(work);
    void work.finally(() => this.#running.delete(work));
  }

  /** Adds work of which requests may ask for any amount: it begins when not too much of it is under way. */
  addInTurn(work: () => Promise<void>): Promise<void> {
    const turn = this.#inTurn(work);
    this.add(turn);
    return turn;
  }

  async #inTurn(work: () => Promise<void>): Promise<void> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((begin) => this.#waiting.push(begin));
    try {
      await work();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free += 1;
    }
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
