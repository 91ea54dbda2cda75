import { eq } from "drizzle-orm";
import { databaseAnswer } from "../../../drizzle/database_answer.ts";
import { challenge } from "../../../drizzle/schema/index.ts";
import { addressScope, isInScope } from "../../../platform/address.ts";
import { looksLikeSecret, sameText, sha256, sha256Hex, toHex } from "../../../platform/secret.ts";
import type { Context } from "../../context.ts";
import type { Keys } from "../token/keys.ts";
import { collect, collectAgain } from "./collect.ts";
import type { KnownChallenges, PollLimits } from "./limits.ts";
import { noteWrongVerifier } from "./note.ts";
import { countChallenge } from "./outcomes.ts";
import { type Challenge, type PollOutcome, stateOf } from "./state.ts";
import type { ChallengeWatch, PendingFacts } from "./watch.ts";

export interface PollContext extends Context {
  watch: ChallengeWatch;
  keys: Keys;
  limits: PollLimits;
  known: KnownChallenges;
}

export interface PollRequest {
  /** T as received. */
  token: string;
  verifier?: string;
  address: string;
  /** The thumbprint of the client's certificate, if it has one. The token is bound to it. */
  certificate?: string;
  /** The request as received, by which a repeated one is recognised. */
  seen: SeenPoll;
  /** Seconds for which the answer may be delayed while nothing happens. Only for bound clients. */
  wait?: number;
  signal?: AbortSignal;
}

/** A poll before it is parsed. */
export interface SeenPoll {
  url: string;
  authorization: string | null;
}

/** An answer, and the challenge as long as waiting for it is useful. */
interface Look {
  outcome: PollOutcome;
  waiting?: PendingFacts;
}

/**
 * Answers a poll from this process's memory. These are most polls, one every other second from each waiting terminal.
 * It counts against the challenge's limit like any other. `facts` are what `watch.recall` returns for the poll's URL.
 * `address` is needed only for a legacy client.
 *
 * @returns undefined if memory is not sufficient: then `pollChallenge` answers
 */
export function pollFromMemory(
  context: PollContext,
  facts: PendingFacts,
  authorization: string | null,
  address: () => string,
  now: Date,
): PollOutcome | undefined {
  if (now.getTime() >= facts.expiresAt) return undefined;
  if (!facts.bound) {
    if (facts.scope !== null && !isInScope(address(), facts.scope)) return undefined;
  } else if (!authorization || !facts.authorization || !sameText(authorization, facts.authorization)) {
    return undefined;
  }
  // A bound client is identified by its verifier. Its polls count for the address that looked it up, because reading the
  // address costs as much as all other checks together.
  const ofAddress = facts.bound
    ? facts.addressBucket
    : context.limits.ofAddress(addressScope(address()), now);
  return pending(context.limits.take(facts.bucket, ofAddress, now));
}

/** Answers a poll from the database (docs/protocol.md, "Poll"), after a wait if requested. */
export async function pollChallenge(context: PollContext, request: PollRequest): Promise<PollOutcome> {
  const { clock, watch } = context;
  const key = sha256Hex(request.token);
  const scope = addressScope(request.address);
  const isKnown = context.known.has(key);
  const wait = context.limits.takeLookup(scope, isKnown ? key : undefined, clock.now());
  if (wait > 0) return pending(wait);
  if (!looksLikeSecret(request.token)) return { status: "unknown" };
  const lookInTime = () => databaseAnswer(look(context, request));
  const { outcome, waiting } = await lookInTime();
  if (!waiting) return outcome;
  const retryAfter = context.limits.take(waiting.bucket, waiting.addressBucket, clock.now());
  if (retryAfter > 0 || !request.wait || !waiting.bound) return pending(retryAfter);

  const lifetimeLeft = waiting.expiresAt - clock.now().getTime();
  const until = performance.now() + Math.min(request.wait * 1000, lifetimeLeft);
  for (;;) {
    // Listen first, then look, so that a decision in between is not missed.
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

/** @param retryAfter seconds, 0 for none */
function pending(retryAfter: number): PollOutcome {
  return retryAfter > 0 ? { status: "pending", retryAfter } : { status: "pending" };
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
    // Not the challenge's bucket: anyone who knows T could use up its client's polls.
    return { outcome: pending(context.limits.takeWrong(found.id)) };
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
        bucket: context.limits.ofChallenge(found.id),
        addressBucket: context.limits.ofAddress(addressScope(request.address), clock.now()),
      };
      if (request.seen.url.endsWith(`/${request.token}`)) {
        watch.remember(request.seen.url, toHex(hash), facts, sequence);
      }
      return { outcome: { status: "pending" }, waiting: facts };
    }
    case "approved":
      return { outcome: await collect(context, found, request) };
    case "collected":
      return { outcome: await collectAgain(context, found, request) };
    case "expired":
      countChallenge(telemetry, state);
      return { outcome: { status: state } };
    case "denied":
      return { outcome: { status: state } };
  }
}

/** The address scope from which a challenge's client must poll. Null for any. */
function scopeToPollFrom(found: Challenge, legacy: "allow" | "same_ip" | "deny"): string | null {
  const anywhere = found.codeChallenge !== null || legacy === "allow";
  return anywhere ? null : addressScope(found.requestAddress);
}

/** Whether the request has what the challenge requires: a bound client's verifier, or a legacy client's address. */
function admits(
  { codeChallenge }: Challenge,
  scope: string | null,
  { verifier, address }: PollRequest,
): boolean {
  if (codeChallenge === null) return scope === null || isInScope(address, scope);
  if (verifier === undefined) return false;
  return sameText(new Bun.CryptoHasher("sha256").update(verifier).digest("base64url"), codeChallenge);
}
