import type { Listener } from "../drizzle/connection/listener.ts";
import { sha256Hex } from "../platform/secret.ts";

/** What a process remembers of an access token: its signed claims, and its row. */
export interface KnownToken {
  jti: string;
  user: string;
  groups: string[];
  /** The key that verified it. */
  kid: string;
  /** The claim `exp`, in seconds. */
  exp: number;
  /** The row's. */
  expiresAt: Date;
  /** The thumbprint of the certificate that it is bound to. */
  certificate?: string;
}

interface Remembered extends KnownToken {
  /** When its row was read, by performance.now(). */
  readAt: number;
}

/** The channel that tells every process of each changed token; a trigger sends. */
const channel = "svc_token";
const rememberedAtMost = 10_000;
/** For changes that no trigger reports, such as those of a restore. */
const longestMilliseconds = 60_000;

/** Counts the revocations of this process, which need no message: the next request after one finds it. */
let revocations = 0;

/** Makes this process look its tokens up again. Other processes get a message. */
export function forgetTokens(): void {
  revocations += 1;
}

/**
 * Remembers access tokens that were valid, by their hashes, so that only the first request of each verifies a signature
 * and reads a row. PostgreSQL tells every process when a row changes (NOTIFY), whichever process changed it.
 *
 * This depends on the listening connection: while there is none, nothing is remembered, and each request asks the
 * database.
 */
export class KnownTokens {
  /** The least recently remembered first. */
  readonly #remembered = new Map<string, Remembered>();
  /** By id. */
  readonly #hashes = new Map<string, string>();
  readonly #listener: Pick<Listener, "subscribe" | "isHeard">;
  #listening = false;
  #sequence = 0;
  #revocations = revocations;

  constructor(listener: Pick<Listener, "subscribe" | "isHeard">) {
    this.#listener = listener;
    const changed = (listening: boolean) => {
      this.#listening = listening;
      this.#forgetAll();
    };
    listener.subscribe({
      channels: { [channel]: (jti) => this.#forget(jti) },
      listening: () => changed(true),
      lost: () => changed(false),
    });
  }

  /** Counts the messages: what was read before a message must not be remembered after it. */
  get sequence(): number {
    if (this.#revocations !== revocations) this.#forgetAll();
    return this.#sequence;
  }

  recall(jwt: string): KnownToken | undefined {
    if (this.#revocations !== revocations) this.#forgetAll();
    if (!this.#listening || this.#remembered.size === 0 || !this.#listener.isHeard()) return undefined;
    const known = this.#remembered.get(sha256Hex(jwt));
    return known && performance.now() - known.readAt < longestMilliseconds ? known : undefined;
  }

  /** Remembers a token that was valid in a read that began at `sequence`. */
  remember(jwt: string, known: KnownToken, sequence: number): void {
    if (!this.#listening || sequence !== this.sequence) return;
    this.#drop(known.jti);
    const [oldest] = this.#remembered.values();
    if (oldest && this.#remembered.size >= rememberedAtMost) this.#drop(oldest.jti);
    const hash = sha256Hex(jwt);
    this.#hashes.set(known.jti, hash);
    this.#remembered.set(hash, { ...known, readAt: performance.now() });
  }

  #forgetAll(): void {
    this.#revocations = revocations;
    this.#sequence += 1;
    this.#remembered.clear();
    this.#hashes.clear();
  }

  #forget(jti: string): void {
    this.#sequence += 1;
    this.#drop(jti);
  }

  #drop(jti: string): void {
    const hash = this.#hashes.get(jti);
    if (hash === undefined) return;
    this.#hashes.delete(jti);
    this.#remembered.delete(hash);
  }
}
