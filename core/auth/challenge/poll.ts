import { eq } from "drizzle-orm";
import { databaseAnswer } from "../../../drizzle/database_answer.ts";
import { challenge } from "../../../drizzle/schema/index.ts";
import { addressScope, isInScope } from "../../../platform/address.ts";
import type { Bucket, RateLimit } from "../../../platform/rate_limit.ts";
import { looksLikeSecret, sameText, sha256, sha256Hex, toHex } from "../../../platform/secret.ts";
import type { Context } from "../../context.ts";
import type { Keys } from "../token/keys.ts";
import { collect, collectAgain } from "./collect.ts";
import type { KnownChallenges } from "./limits.ts";
import { noteWrongVerifier } from "./note.ts";
import { type Challenge, stateOf } from "./state.ts";
import type { ChallengeWatch, PendingFacts } from "./watch.ts";

export interface PollContext extends Context {
  watch: ChallengeWatch;
  keys: Keys;
  /** A bucket for each challenge, and one more for those who poll it without its verifier. */
  limit: RateLimit;
  /** Where each address's polls of challenges that exist are counted. */
  addressLimit: RateLimit;
  known: KnownChallenges;
}

export interface PollRequest {
  /** T as it came in. */
  token: string;
  verifier?: string;
  address: string;
  addressBucket: Bucket;
  /** The request as it came in: what the next one like it is recognised by. */
  seen: SeenPoll;
  /** Seconds for which the answer may be held back while nothing happens; heeded for bound clients only. */
  wait?: number;
  signal?: AbortSignal;
}

/** A poll of which nothing was taken apart yet. */
export interface SeenPoll {
  url: string;
  authorization: string | null;
}

export type PollOutcome =
  | { status: "pending"; retryAfter?: number }
  | { status: "success"; jwt: string; expiresAt: Date; user: string }
  | { status: "unknown" | "expired" | "denied" };

/** An answer, and the challenge for as long as it is worth waiting for. */
interface Look {
  outcome: PollOutcome;
  waiting?: PendingFacts;
}

/**
 * Answers a poll from this process's memory: the bulk of all polls, one every other second of each waiting terminal.
 * It counts against the challenge's limit like any other. `facts` are what `watch.recall` knows by the poll's URL;
 * only a legacy client's `address` is asked for.
 *
 * @returns undefined when memory cannot tell: then `pollChallenge` answers
 */
export function pollFromMemory(
  context: PollContext,
  facts: PendingFacts,
  authorization: string | null,
  address: () => string,
  now: Date,
): Extract<PollOutcome, { status: "pending" }> | undefined {
  if (now.getTime() >= facts.expiresAt) return undefined;
  if (!facts.bound) {
    if (facts.scope !== null && !isInScope(address(), facts.scope)) return undefined;
  } else if (!authorization || !facts.authorization || !sameText(authorization, facts.authorization)) {
    return undefined;
  }
  return counted(context, facts.bucket, now);
}

/** Answers one poll from the database (spec 4.1, poller; the table in login.md), after a wait if one is asked for. */
export async function pollChallenge(context: PollContext, request: PollRequest): Promise<PollOutcome> {
  const { clock, watch } = context;
  if (!looksLikeSecret(request.token)) return { status: "unknown" };
  const lookInTime = () => databaseAnswer(look(context, request));
  const { outcome, waiting } = await lookInTime();
  if (!waiting) return outcome;
  const pending = countedTwice(context, waiting.bucket, request.addressBucket, clock.now());
  if (pending.retryAfter || !request.wait || !waiting.bound) return pending;

  const lifetimeLeft = waiting.expiresAt - clock.now().getTime();
  const until = performance.now() + Math.min(request.wait * 1000, lifetimeLeft);
  const key = sha256Hex(request.token);
  for (;;) {
    // Listen first, then look: a decision in between is seen by one of the two.
    const news = watch.next(key, until - performance.now(), request.signal);
    try {
      const again = await lookInTime();
      if (!again.waiting) return again.outcome;
      const end = await news.happened;
      if (end === "timeout") return (await lookInTime()).outcome;
      if (end === "gone") return again.outcome;
    } finally {
      news.cancel();
    }
  }
}

function counted(
  { limit }: PollContext,
  bucket: Bucket,
  now: Date,
): Extract<PollOutcome, { status: "pending" }> {
  const retryAfter = limit.takeFrom(bucket, now);
  return retryAfter > 0 ? { status: "pending", retryAfter } : { status: "pending" };
}

/** Against the challenge first: polls that it refuses take nothing from its address. */
function countedTwice(
  context: PollContext,
  bucket: Bucket,
  addressBucket: Bucket,
  now: Date,
): Extract<PollOutcome, { status: "pending" }> {
  const pending = counted(context, bucket, now);
  if (pending.retryAfter) return pending;
  const retryAfter = context.addressLimit.takeFrom(addressBucket, now);
  return retryAfter > 0 ? { status: "pending", retryAfter } : pending;
}

async function look(context: PollContext, request: PollRequest): Promise<Look> {
  const { db, clock, config, watch, telemetry } = context;
  const hash = sha256(request.token);
  const { sequence } = watch;
  const [found] = await db.select().from(challenge).where(eq(challenge.tokenHash, hash));
  if (!found || (found.codeChallenge === null && config.challengeLegacy === "deny")) {
    return { outcome: { status: "unknown" } };
  }
  const scope = scopeToPollFrom(found, config.challengeLegacy);
  if (!admits(found, scope, request)) {
    if (found.codeChallenge === null) return { outcome: { status: "unknown" } };
    await noteWrongVerifier(context, found, request.address);
    // Not the challenge's own bucket: whoever knows T could use up what its client may poll.
    return { outcome: counted(context, context.limit.bucket(`wrong:${found.id}`), clock.now()) };
  }
  const state = stateOf(found, clock.now());
  if (state !== "pending") watch.forget(toHex(hash));
  switch (state) {
    case "pending": {
      context.known.add(toHex(hash));
      const facts = {
        bound: found.codeChallenge !== null,
        scope,
        expiresAt: found.expiresAt.getTime(),
        authorization: request.seen.authorization,
        bucket: context.limit.bucket(found.id),
        addressBucket: request.addressBucket,
      };
      if (request.seen.url.endsWith(`/${request.token}`)) {
        watch.remember(request.seen.url, toHex(hash), facts, sequence);
      }
      return { outcome: { status: "pending" }, waiting: facts };
    }
    case "approved":
      return { outcome: await collect(context, found, request.address) };
    case "collected":
      return { outcome: await collectAgain(context, found) };
    case "expired":
      telemetry?.challenge(state);
      return { outcome: { status: state } };
    case "denied":
      return { outcome: { status: state } };
  }
}

/** The address scope that the client of a challenge must poll from; null where any will do. */
function scopeToPollFrom(found: Challenge, legacy: "allow" | "same_ip" | "deny"): string | null {
  const anywhere = found.codeChallenge !== null || legacy === "allow";
  return anywhere ? null : addressScope(found.requestAddress);
}

/** Whether the request has what the challenge asks for: a bound client its verifier, a legacy one its address. */
function admits(
  { codeChallenge }: Challenge,
  scope: string | null,
  { verifier, address }: PollRequest,
): boolean {
  if (codeChallenge === null) return scope === null || isInScope(address, scope);
  if (verifier === undefined) return false;
  return sameText(new Bun.CryptoHasher("sha256").update(verifier).digest("base64url"), codeChallenge);
}
