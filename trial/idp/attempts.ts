const allowed = 10;
const windowMilliseconds = 60_000;
const remembered = 1000;

/**
 * Counts wrong passwords: ten a minute for a user, then the right one is refused too. A name that is no user's is
 * counted alike, or the limit would tell users from others; how many such names are remembered is bounded.
 */
export class Attempts {
  #wrong = new Map<string, { count: number; since: number }>();

  constructor(
    private readonly isUser: (name: string) => boolean,
    private readonly now: () => number = () => performance.now(),
  ) {}

  /** Seconds until `name` may try again; 0: now. */
  wait(name: string): number {
    const entry = this.#current(name);
    if (!entry || entry.count < allowed) return 0;
    return Math.ceil((entry.since + windowMilliseconds - this.now()) / 1000);
  }

  wrong(name: string): void {
    const entry = this.#current(name) ?? { count: 0, since: this.now() };
    entry.count++;
    this.#wrong.set(name, entry);
    if (this.#wrong.size <= remembered) return;
    // Never a user's: whoever sends a thousand invented names must not get new attempts for a real one.
    const oldest = this.#wrong.keys().find((key) => !this.isUser(key));
    if (oldest !== undefined) this.#wrong.delete(oldest);
  }

  right(name: string): void {
    this.#wrong.delete(name);
  }

  #current(name: string) {
    const entry = this.#wrong.get(name);
    if (!entry || this.now() - entry.since < windowMilliseconds) return entry;
    this.#wrong.delete(name);
    return undefined;
  }
}
