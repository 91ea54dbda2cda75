import type { Listener } from "../../../drizzle/connection/listener.ts";
import type { Bucket } from "../../../platform/rate_limit.ts";

/** What a process remembers of a pending challenge. Small, because there may be very many. */
export interface PendingFacts {
  /** Whether the client must prove itself with a verifier. If not, it is a legacy client. */
  bound: boolean;
  /** The address scope from which a legacy client must poll. Null for any. */
  scope: string | null;
  /** Milliseconds, as in the clock. */
  expiresAt: number;
  /** The header with the right verifier: later polls are compared with it instead of hashing. */
  authorization: string | null;
  /** Counts its polls. */
  bucket: Bucket;
  /** Counts the polls of the address from which it was looked up. */
  addressBucket: Bucket;
}

export type WaitEnd = "news" | "timeout" | "gone";

interface Waiter {
  key: string;
  end(reason: WaitEnd): void;
}

/** The channel that tells every process of each decided challenge; a trigger sends. */
const channel = "svc_challenge";
const recheckSeconds = 1;
const rememberedAtMost = 200_000;
/** Far longer than ours: the client chooses it with the Host header. */
const longestUrl = 300;
const waitersOfOneChallenge = 2;

/**
 * Learns of decided challenges from PostgreSQL (NOTIFY), whichever process decided them.
 *
 * It lets a process remember `pending` and delay a poll. Both depend on the listening connection: when that is lost,
 * everything remembered is forgotten, nothing new is remembered, and delayed polls look for themselves once a second
 * until it is back.
 */
export class ChallengeWatch {
  /** By the exact URL of its polls, so that T need not be parsed. */
  readonly #remembered = new Map<string, PendingFacts>();
  /** The URL by what is sent: the hex hash of T. */
  readonly #urls = new Map<string, string>();
  readonly #waiters = new Map<string, Set<Waiter>>();
  #listening = false;
  #stopped = false;
  #sequence = 0;

  constructor(listener: Pick<Listener, "subscribe">) {
    const changed = (listening: boolean) => {
      this.#listening = listening;
      this.#sequence += 1;
      if (!listening) {
        this.#remembered.clear();
        this.#urls.clear();
      }
      // Decisions made while nobody listened were missed.
      for (const waiters of [...this.#waiters.values()]) endAll(waiters, "news");
    };
    listener.subscribe({
      channels: { [channel]: (key) => this.decided(key) },
      listening: () => changed(true),
      lost: () => changed(false),
    });
  }

  /** Ends all waits, and each later one at once. */
  stop(): void {
    this.#stopped = true;
    for (const waiters of [...this.#waiters.values()]) endAll(waiters, "timeout");
  }

  /** Counts the messages: what was read before a message must not be remembered after it. */
  get sequence(): number {
    return this.#sequence;
  }

  recall(url: string): PendingFacts | undefined {
    return this.#listening ? this.#remembered.get(url) : undefined;
  }

  /**
   * Remembers a challenge that was pending in a read that began at `sequence`, under the URL by which it is polled (the
   * last one, if a client varies it). `key` is the hex hash of its token.
   */
  remember(url: string, key: string, facts: PendingFacts, sequence: number): void {
    if (!this.#listening || sequence !== this.#sequence || url.length > longestUrl) return;
    this.forget(key);
    if (this.#urls.size >= rememberedAtMost) this.forget(this.#urls.keys().next().value as string);
    this.#urls.set(key, url);
    this.#remembered.set(url, facts);
  }

  forget(key: string): void {
    const url = this.#urls.get(key);
    if (url === undefined) return;
    this.#urls.delete(key);
    this.#remembered.delete(url);
  }

  /**
   * Waits for news of a challenge, identified by the hash of its token. Ends with `news` (look again), `timeout`, or
   * `gone` when `signal` says that the client no longer waits. A third wait for one challenge ends the oldest, whose
   * client has come back.
   */
  next(
    key: string,
    milliseconds: number,
    signal?: AbortSignal,
  ): { happened: Promise<WaitEnd>; cancel(): void } {
    const { promise, resolve } = Promise.withResolvers<WaitEnd>();
    const waiters = this.#waiters.get(key) ?? new Set();
    const recheck = !this.#listening && milliseconds > recheckSeconds * 1000;
    const timer = setTimeout(
      () => waiter.end(recheck ? "news" : "timeout"),
      recheck ? recheckSeconds * 1000 : Math.max(0, milliseconds),
    );
    const leave = () => waiter.end("gone");
    const waiter: Waiter = {
      key,
      end: (reason) => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", leave);
        waiters.delete(waiter);
        if (waiters.size === 0 && this.#waiters.get(key) === waiters) this.#waiters.delete(key);
        resolve(reason);
      },
    };
    this.#waiters.set(key, waiters.add(waiter));
    if (waiters.size > waitersOfOneChallenge) waiters.values().next().value?.end("timeout");
    if (this.#stopped) waiter.end("timeout");
    else if (signal?.aborted) leave();
    else signal?.addEventListener("abort", leave);
    return { happened: promise, cancel: () => waiter.end("timeout") };
  }

  /** Handles a decided challenge: forgets it, and ends the waits for it. */
  decided(key: string): void {
    this.#sequence += 1;
    this.forget(key);
    endAll(this.#waiters.get(key) ?? [], "news");
  }
}

/** Each waiter removes itself. */
function endAll(waiters: Iterable<Waiter>, reason: WaitEnd): void {
  for (const waiter of [...waiters]) waiter.end(reason);
}
