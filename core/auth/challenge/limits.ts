import { and, gt, isNull, sql } from "drizzle-orm";
import { challenge } from "../../../drizzle/schema/index.ts";
import { addressScope } from "../../../platform/address.ts";
import type { Clock } from "../../../platform/clock.ts";
import { type Bucket, RateLimit } from "../../../platform/rate_limit.ts";
import type { Context } from "../../context.ts";

/** One user name's share of its address's limit: one in this many. */
const userShare = 5;
/** What one person needs at once, at two terminals or with a script for a handful of servers. */
const smallestBurst = 5;

/**
 * Limits how often sign-in requests may be started: per address, and per user name only a share of that, so that one
 * person cannot use up a whole office's limit. A name alone opens no bucket: each attempt also counts against its
 * address.
 */
export class GenerationLimit {
  readonly #addresses: RateLimit;
  readonly #users: RateLimit;

  constructor(clock: Clock, perMinute: number) {
    const share = Math.max(1, Math.ceil(perMinute / userShare));
    this.#addresses = new RateLimit(clock, perMinute, Math.max(2 * smallestBurst, Math.ceil(perMinute / 2)));
    this.#users = new RateLimit(clock, share, Math.max(smallestBurst, Math.ceil(share / 2)));
  }

  /**
   * Takes one attempt of this address and user.
   * @param user canonical, or "" for an invalid user name
   * @returns 0 if it is allowed, else the whole seconds until the next one is
   */
  take(scope: string, user: string, now: Date): number {
    const address = this.#addresses.bucket(scope, now);
    const wait = this.#addresses.wait(address, now);
    // Checked first: an address without attempts left opens no bucket for an invented name.
    if (wait > 0) return wait;
    const retryAfter = this.#users.take(`${scope} ${user}`, now);
    return retryAfter || this.#addresses.takeFrom(address, now);
  }
}

/** Polls of one challenge in a burst; after that, one per half interval. */
const pollBurst = 5;

/**
 * Limits polls per challenge and per address. The buckets are separate, so that nobody uses up another's polls: a client's
 * own, those of strangers who know its token, and those of unknown tokens.
 */
export class PollLimits {
  readonly #challenges: RateLimit;
  readonly #addresses: RateLimit;

  constructor(
    clock: Clock,
    { challengeInterval, ratePoll }: { challengeInterval: number; ratePoll: number },
  ) {
    this.#challenges = new RateLimit(clock, 120 / challengeInterval, pollBurst);
    this.#addresses = new RateLimit(clock, ratePoll, Math.max(50, Math.ceil(ratePoll / 10)));
  }

  ofChallenge(id: string): Bucket {
    return this.#challenges.bucket(id);
  }

  ofAddress(scope: string, now: Date): Bucket {
    return this.#addresses.bucket(scope, now);
  }

  /**
   * Counts a poll that has to ask the database: of one known challenge, or of any unknown token.
   * @returns 0 if it is allowed, else the seconds to wait, like the others
   */
  takeLookup(scope: string, challenge: string | undefined, now: Date): number {
    return this.#addresses.take(`${scope} ${challenge ?? "unknown"}`, now);
  }

  /** Counts a poll of a pending challenge. If its limit refuses it, it does not count against the address. */
  take(ofChallenge: Bucket, ofAddress: Bucket, now: Date): number {
    return this.#challenges.takeFrom(ofChallenge, now) || this.#addresses.takeFrom(ofAddress, now);
  }

  /** Counts a poll without the right verifier. */
  takeWrong(id: string): number {
    return this.#challenges.take(`wrong ${id}`);
  }
}

/** How many sign-in requests may be open at once. At the limit, none is opened until some are decided or expire. */
export interface OpenLimits {
  inTotal: number;
  ofAddress: number;
  /** For one user name at one address. */
  ofUser: number;
}

const defaultLimits: OpenLimits = { inTotal: 50_000, ofAddress: 1000, ofUser: 200 };

const recountMilliseconds = 1000;
const retrySeconds = 10;

/**
 * Knows how many sign-in requests are open. It counts them in the database at most once a second, and adds those that
 * this process opens. Several processes may together exceed a limit by what they open within that second.
 */
export class OpenChallenges {
  #counts = new Map<string, number>();
  #total = 0;
  #countedAt = Number.NEGATIVE_INFINITY;
  #counting: Promise<void> | undefined;

  constructor(private readonly limits: OpenLimits = defaultLimits) {}

  /** Counts one more, unless that would be too many. @returns 0, or the seconds to wait */
  async add(context: Context, request: { userName: string; address: string }): Promise<number> {
    if (Math.abs(context.clock.now().getTime() - this.#countedAt) >= recountMilliseconds) {
      this.#counting ??= this.#count(context).finally(() => {
        this.#counting = undefined;
      });
      await this.#counting;
    }
    const { ofAddress, ofUser, inTotal } = this.limits;
    const scope = addressScope(request.address);
    const user = `${scope} ${request.userName}`;
    if (this.#total >= inTotal || this.#of(scope) >= ofAddress || this.#of(user) >= ofUser)
      return retrySeconds;
    this.#add(scope, user, 1);
    return 0;
  }

  #of(name: string): number {
    return this.#counts.get(name) ?? 0;
  }

  #add(scope: string, user: string, count: number): void {
    this.#counts.set(scope, this.#of(scope) + count);
    this.#counts.set(user, this.#of(user) + count);
    this.#total += count;
  }

  async #count({ db, clock }: Context): Promise<void> {
    const now = clock.now();
    const rows = await db
      .select({
        address: challenge.requestAddress,
        userName: challenge.userName,
        count: sql<number>`count(*)`.mapWith(Number),
      })
      .from(challenge)
      .where(and(gt(challenge.expiresAt, now), isNull(challenge.collectedAt), isNull(challenge.deniedAt)))
      .groupBy(challenge.requestAddress, challenge.userName);
    this.#counts = new Map();
    this.#total = 0;
    this.#countedAt = now.getTime();
    for (const { address, userName, count } of rows) {
      const scope = addressScope(address);
      this.#add(scope, `${scope} ${userName}`, count);
    }
  }
}

/**
 * The recently opened challenges, by the hex hash of their token: their polls can be told from those of invented tokens
 * without asking the database. Incomplete: a process that has just started knows none.
 */
export class KnownChallenges {
  /** When each one ends, in milliseconds, in the order in which they became known. */
  readonly #until = new Map<string, number>();

  constructor(
    private readonly clock: Clock,
    private readonly lifetimeSeconds: number,
    private readonly capacity = 100_000,
  ) {}

  add(key: string): void {
    const now = this.clock.now().getTime();
    for (const [oldest, until] of this.#until) {
      if (until > now && this.#until.size < this.capacity) break;
      this.#until.delete(oldest);
    }
    this.#until.delete(key);
    this.#until.set(key, now + this.lifetimeSeconds * 1000);
  }

  has(key: string): boolean {
    return (this.#until.get(key) ?? Number.NEGATIVE_INFINITY) > this.clock.now().getTime();
  }
}
