const allowed = 10;
const windowMilliseconds = 60_000;
const remembered = 1000;

/**
 * Counts wrong passwords: after ten in a minute for a user, even the right one is refused. Unknown names are counted
 * alike, since the limit would otherwise reveal which users exist; the number of remembered names is bounded.
 */
export class Attempts {
  #wrong = new Map<string, { count: number; since: number }>();

  constructor(private readonly isUser: (name: string) => boolean) {}

  /** Seconds until `name` may try again; 0: now. */
  wait(name: string): number {
    const entry = this.#current(name);
    if (!entry || entry.count < allowed) return 0;
    return Math.ceil((entry.since + windowMilliseconds - performance.now()) / 1000);
  }

  wrong(name: string): void {
    const entry = this.#current(name) ?? { count: 0, since: performance.now() };
    entry.count++;
    this.#wrong.set(name, entry);
    if (this.#wrong.size <= remembered) return;
    // Never drops a real user: a thousand invented names must not reset the limit of a real one.
    const oldest = this.#wrong.keys().find((key) => !this.isUser(key));
    if (oldest !== undefined) this.#wrong.delete(oldest);
  }

  right(name: string): void {
    this.#wrong.delete(name);
  }

  #current(name: string) {
    const entry = this.#wrong.get(name);
    if (!entry || performance.now() - entry.since < windowMilliseconds) return entry;
    this.#wrong.delete(name);
    return undefined;
  }
}
