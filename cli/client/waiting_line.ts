import type { Io } from "../io.ts";
import { canDraw } from "../screen.ts";
import { cut } from "../table.ts";
import { printable } from "../text.ts";

const patienceMilliseconds = 1500;

/** Shows on a terminal that the server is slow to answer. */
export class WaitingLine {
  #pending = 0;
  #timer: NodeJS.Timeout | undefined;
  #isShown = false;

  constructor(
    readonly io: Io,
    readonly base: string,
    signal: AbortSignal,
  ) {
    // Ctrl-C does not wait for the requests.
    signal.addEventListener("abort", () => this.#clear(), { once: true });
  }

  /** A request begins; the returned function ends it. */
  start(): () => void {
    this.#pending += 1;
    if (this.#pending === 1 && canDraw(this.io.stderr, this.io.env))
      this.#timer = setTimeout(() => this.#show(), patienceMilliseconds);
    return () => {
      this.#pending -= 1;
      if (this.#pending === 0) this.#clear();
    };
  }

  #show(): void {
    const { stderr } = this.io;
    this.#isShown = true;
    const text = `Waiting for ${printable(this.base, 200)} (Ctrl-C to stop)`;
    stderr.write(cut(text, Math.max(1, (stderr.columns ?? 80) - 1)));
  }

  #clear(): void {
    clearTimeout(this.#timer);
    if (this.#isShown) this.io.stderr.write("\r\x1b[K");
    this.#isShown = false;
  }
}
