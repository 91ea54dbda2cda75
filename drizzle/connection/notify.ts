import type { Database, Transaction } from "../database.ts";
import type { Sql } from "./sql.ts";

// NOTIFY as a hint: sent after the commit that it is about, because within the transaction it would lock the whole cluster
// until the end of the commit, which halves the throughput of 10 writers.

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
export class Notifier {
  /** By channel: the highest number of each subject. */
  readonly #pending = new Map<string, Map<number, number>>();
  #sending: Promise<void> | undefined;

  constructor(private readonly client: Pick<Sql, "unsafe">) {}

  /** Sends a number that is committed. */
  notify(channel: string, subject: number, number: number): void {
    const numbers = this.#pending.get(channel) ?? new Map<number, number>();
    this.#pending.set(channel, numbers);
    numbers.set(subject, Math.max(number, numbers.get(subject) ?? 0));
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = undefined;
    });
  }

  /** Resolves when everything so far has been sent, or cannot be. */
  async flush(): Promise<void> {
    await this.#sending;
  }

  async #sendAll(): Promise<void> {
    // Several events of one transaction are sent together.
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

type Hint = () => void;
type Config = Parameters<Database["transaction"]>[1];

const notifiers = new WeakMap<Database | Transaction, Notifier>();
/** What each open transaction sends when it is committed. */
const pending = new WeakMap<Database | Transaction, Hint[]>();

/** Makes `notifyAfterCommit` work for a database and its transactions. */
export function notifyWith(db: Database, notifier: Notifier): void {
  notifiers.set(db, notifier);
  const begin = db.transaction.bind(db);
  db.transaction = async <T>(work: (tx: Transaction) => Promise<T>, config?: Config) => {
    const hints: Hint[] = [];
    const result = await begin((tx) => {
      register(tx, hints, notifier);
      return work(tx);
    }, config);
    for (const send of hints) send();
    return result;
  };
}

/** A savepoint's hints are those of its transaction. If only it is rolled back, a hint too many is sent. */
function register(tx: Transaction, hints: Hint[], notifier: Notifier): void {
  notifiers.set(tx, notifier);
  pending.set(tx, hints);
  const begin = tx.transaction.bind(tx);
  tx.transaction = (work) =>
    begin((inner) => {
      register(inner, hints, notifier);
      return work(inner);
    });
}

/**
 * Sends a hint once the transaction is committed, or at once outside a transaction. Nothing is
 * sent for a transaction that is rolled back.
 */
export function notifyAfterCommit(
  db: Database | Transaction,
  channel: string,
  subject: number,
  number: number,
): void {
  afterCommit(db, () => notifiers.get(db)?.notify(channel, subject, number));
}

/** Calls a function once the transaction is committed, or at once outside a transaction; never if it is rolled back. */
export function afterCommit(db: Database | Transaction, work: Hint): void {
  const later = pending.get(db);
  if (later) later.push(work);
  else work();
}
