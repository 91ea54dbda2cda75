import { eq } from "drizzle-orm";
import { challenge } from "../../drizzle/schema/index.ts";
import { addressScope, isInScope } from "../address.ts";
import type { Context } from "../context.ts";
import type { RateLimit } from "../rate_limit.ts";
import { looksLikeSecret, sameText, sha256, sha256Hex, toHex } from "../secret.ts";
import type { Keys } from "../token/keys.ts";
import { collect, collectAgain } from "./collect.ts";
import { noteWrongVerifier } from "./note.ts";
import { type Challenge, stateOf } from "./state.ts";
import type { ChallengeWatch, PendingFacts } from "./watch.ts";

export interface PollContext extends Context {
  watch: ChallengeWatch;
  keys: Keys;
  /** One bucket a challenge. */
  limit: RateLimit;
}

export interface PollRequest {
  /** T as it came in. */
  token: string;
  verifier?: string;
  address: string;
  /** Seconds for which the answer may be held back while nothing happens; heeded for bound clients only. */
  wait?: number;
  signal?: AbortSignal;
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
 * It counts against the challenge's limit like any other.
 *
 * @returns undefined when memory cannot tell, or the poll is to be held back: then `pollChallenge` answers
 */
export function pollFromMemory(
  context: PollContext,
  request: PollRequest,
  now: Date,
): PollOutcome | undefined {
  const { watch } = context;
  if (request.wait) return undefined;
  const facts = watch.recall(request.token);
  if (!facts || !admits(facts, request)) return undefined;
  if (now.getTime() >= facts.expiresAt.getTime()) {
    watch.forget(request.token);
    return undefined;
  }
  return counted(context, facts, now);
}

/** Answers one poll from the database (spec 4.1, poller; the table in login.md), after a wait if one is asked for. */
export async function pollChallenge(context: PollContext, request: PollRequest): Promise<PollOutcome> {
  const { clock, watch } = context;
  if (!looksLikeSecret(request.token)) return { status: "unknown" };
  const { outcome, waiting } = await look(context, request);
  if (!waiting) return outcome;
  const pending = counted(context, waiting, clock.now());
  if (pending.retryAfter || !request.wait || waiting.codeChallenge === null) return pending;

  const lifetimeLeft = waiting.expiresAt.getTime() - clock.now().getTime();
  const until = performance.now() + Math.min(request.wait * 1000, lifetimeLeft);
  const key = sha256Hex(request.token);
  for (;;) {
    // Listen first, then look: a decision in between is seen by one of the two.
    const news = watch.next(key, until - performance.now(), request.signal);
    try {
      const again = await look(context, request);
      if (!again.waiting) return again.outcome;
      const end = await news.happened;
      if (end === "timeout") return (await look(context, request)).outcome;
      if (end === "gone") return again.outcome;
    } finally {
      news.cancel();
    }
  }
}

function counted(
  { limit }: PollContext,
  { id }: PendingFacts,
  now: Date,
): Extract<PollOutcome, { status: "pending" }> {
  const retryAfter = limit.take(id, now);
  return retryAfter > 0 ? { status: "pending", retryAfter } : { status: "pending" };
}

async function look(context: PollContext, request: PollRequest): Promise<Look> {
  const { db, clock, config, watch } = context;
  const hash = sha256(request.token);
  const { sequence } = watch;
  const [found] = await db.select().from(challenge).where(eq(challenge.tokenHash, hash));
  if (!found || (found.codeChallenge === null && config.challengeLegacy === "deny")) {
    return { outcome: { status: "unknown" } };
  }
  const facts = factsOf(found, config.challengeLegacy);
  if (!admits(facts, request)) {
    if (found.codeChallenge === null) return { outcome: { status: "unknown" } };
    await noteWrongVerifier(context, found, request.address);
    return { outcome: { status: "pending" } };
  }
  const state = stateOf(found, clock.now());
  switch (state) {
    case "pending":
      watch.remember(request.token, toHex(hash), facts, sequence);
      return { outcome: { status: "pending" }, waiting: facts };
    case "approved":
      return { outcome: await collect(context, found, request.address) };
    case "collected":
      return { outcome: await collectAgain(context, found) };
    default:
      return { outcome: { status: state } };
  }
}

function factsOf(found: Challenge, legacy: "allow" | "same_ip" | "deny"): PendingFacts {
  const sameAddress = found.codeChallenge === null && legacy !== "allow";
  return {
    id: found.id,
    codeChallenge: found.codeChallenge,
    scope: sameAddress ? addressScope(found.requestAddress) : null,
    expiresAt: found.expiresAt,
  };
}

/** Whether the request has what the challenge asks for: a bound client its verifier, a legacy one its address. */
function admits(facts: PendingFacts, { verifier, address }: PollRequest): boolean {
  const { codeChallenge, scope } = facts;
  if (codeChallenge === null) return scope === null || isInScope(address, scope);
  if (verifier === undefined) return false;
  if (facts.verifier !== undefined) return sameText(verifier, facts.verifier);
  const right = sameText(new Bun.CryptoHasher("sha256").update(verifier).digest("base64url"), codeChallenge);
  if (right) facts.verifier = verifier;
  return right;
}
