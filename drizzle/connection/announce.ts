import type { Sql } from "./sql.ts";

// NOTIFY as a hint: sent after the commit that it announces, because within the transaction it would lock the whole
// cluster until the end of the commit. With 10 and 32 writers (lock an incident, insert an event), PostgreSQL 18
// did 1,156 and 1,416 transactions a second without it, 533 and 620 with pg_notify in a trigger, and 1,021 and 1,314
// with hints that are sent like this.

/** After sending, further hints are collected for this long. */
const gatherMilliseconds = 15;
/** Without a flush to disk, which a hint does not need. */
export const hintStatement =
  "select pg_catalog.set_config('synchronous_commit', 'off', true), pg_catalog.pg_notify($1, $2)";
/** In characters. PostgreSQL refuses a payload of 8000 bytes. */
const longestHint = 7900;

/**
 * Sends hints on channels: pairs of a subject and the highest number that it has reached, as `7 102 9 104`. Hints that
 * come together are sent together. A lost one is not repeated: listeners also poll.
 */
export class Announcer {
  /** By channel: the highest number of each subject. */
  readonly #pending = new Map<string, Map<number, number>>();
  #sending: Promise<void> | undefined;

  constructor(private readonly client: Pick<Sql, "unsafe">) {}

  /** Announces a number that is committed. */
  announce(channel: string, subject: number, number: number): void {
    const numbers = this.#pending.get(channel) ?? new Map<number, number>();
    this.#pending.set(channel, numbers);
    numbers.set(subject, Math.max(number, numbers.get(subject) ?? 0));
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = undefined;
    });
  }

  /** Resolves when everything announced so far has been sent, or cannot be. */
  async flush(): Promise<void> {
    await this.#sending;
  }

  async #sendAll(): Promise<void> {
    // Several events of one transaction are announced together.
    await Promise.resolve();
    while (this.#pending.size > 0) {
      const pending = [...this.#pending];
      this.#pending.clear();
      for (const [channel, numbers] of pending)
        for (const hint of hintsOf(numbers)) await this.#send(channel, hint);
      await Bun.sleep(gatherMilliseconds);
    }
  }

  async #send(channel: string, hint: string): Promise<void> {
    try {
      await this.client.unsafe(hintStatement, [channel, hint]);
    } catch {
      // The connection is lost or the program ends. Listeners also poll.
    }
  }
}

/** Splits pairs into texts that PostgreSQL accepts. */
function hintsOf(numbers: ReadonlyMap<number, number>): string[] {
  const hints: string[] = [];
  for (const [subject, number] of numbers) {
    const pair = `${subject} ${number}`;
    const last = hints.at(-1);
    if (last === undefined || last.length + 1 + pair.length > longestHint) hints.push(pair);
    else hints[hints.length - 1] = `${last} ${pair}`;
  }
  return hints;
}
