import { eq } from "drizzle-orm";
import { challenge } from "../../drizzle/schema/index.ts";
import { addressScope } from "../address.ts";
import type { Context } from "../context.ts";
import type { RateLimit } from "../rate_limit.ts";
import { looksLikeSecret, sameText, sha256, toHex } from "../secret.ts";
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
 * Answers one poll (spec 4.1, poller; the table in login.md). While nothing was decided, and this process would hear
 * of it, the answer comes from memory; every other one from the database.
 */
export async function pollChallenge(context: PollContext, request: PollRequest): Promise<PollOutcome> {
  const { clock, limit, watch } = context;
  if (!looksLikeSecret(request.token)) return { status: "unknown" };
  const hash = sha256(request.token);
  const key = toHex(hash);
  const { outcome, waiting } = recall(context, request, key) ?? (await look(context, request, hash, key));
  if (!waiting) return outcome;
  const retryAfter = limit.take(waiting.id);
  if (retryAfter > 0) return { status: "pending", retryAfter };
  if (!request.wait || waiting.codeChallenge === null) return outcome;

  const lifetimeLeft = waiting.expiresAt.getTime() - clock.now().getTime();
  const until = performance.now() + Math.min(request.wait * 1000, lifetimeLeft);
  for (;;) {
    // Listen first, then look: a decision in between is seen by one of the two.
    const news = watch.next(key, until - performance.now(), request.signal);
    const again = await look(context, request, hash, key);
    if (!again.waiting) {
      news.cancel();
      return again.outcome;
    }
    const end = await news.happened;
    if (end === "timeout") return (await look(context, request, hash, key)).outcome;
    if (end === "gone") return again.outcome;
  }
}

function recall({ clock, watch }: PollContext, request: PollRequest, key: string): Look | undefined {
  const facts = watch.recall(key);
  if (!facts || !admits(facts, request)) return undefined;
  if (clock.now() < facts.expiresAt) return { outcome: { status: "pending" }, waiting: facts };
  watch.forget(key);
  return { outcome: { status: "expired" } };
}

async function look(context: PollContext, request: PollRequest, hash: Uint8Array, key: string): Promise<Look> {
  const { db, clock, config, watch } = context;
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
      watch.remember(key, facts, sequence);
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
function admits({ codeChallenge, scope }: PendingFacts, { verifier, address }: PollRequest): boolean {
  if (codeChallenge === null) return scope === null || scope === addressScope(address);
  if (verifier === undefined) return false;
  return sameText(new Bun.CryptoHasher("sha256").update(verifier).digest("base64url"), codeChallenge);
}
