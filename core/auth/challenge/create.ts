import { sql } from "drizzle-orm";
import { challenge } from "../../../drizzle/schema/index.ts";
import { after } from "../../../platform/clock.ts";
import { Forbidden, InvalidInput, TooManyRequests } from "../../../platform/errors.ts";
import { looksLikeSecret, newSecret, newUserCode, sha256, toHex } from "../../../platform/secret.ts";
import type { Context } from "../../context.ts";
import { canonicalUserName } from "../user/name.ts";
import type { KnownChallenges, OpenChallenges } from "./limits.ts";
import { countChallenge } from "./outcomes.ts";

/** The channel that tells every process of each opened challenge. */
export const openedChannel = "svc_challenge_opened";

export interface NewChallenge {
  /** T itself: returned to the client and not stored. */
  token: string;
  userCode: string;
  bound: boolean;
}

/**
 * Opens a challenge for a user name, known or not: the answer does not reveal which (docs/protocol.md).
 *
 * @param request.codeChallenge base64url SHA-256 of the client's verifier. None for a legacy client
 * @param request.address the client's address; `request.client` is the client's name for itself
 * @throws InvalidInput for an invalid user name or code challenge
 * @throws Forbidden when legacy clients are not allowed
 * @throws TooManyRequests when too many are open
 */
export async function createChallenge(
  context: Context & { open: OpenChallenges; known: KnownChallenges },
  request: {
    userName: string;
    codeChallenge?: string;
    codeChallengeMethod?: string;
    address: string;
    client: string;
  },
): Promise<NewChallenge> {
  const { db, clock, config, telemetry } = context;
  const userName = canonicalUserName(request.userName, config.domain);
  const codeChallenge = checkedCodeChallenge(request.codeChallenge, request.codeChallengeMethod);
  if (codeChallenge === null && config.challengeLegacy === "deny") {
    countChallenge(telemetry, "refused");
    throw new Forbidden(
      "This server signs in only clients that send a code_challenge: please update your client",
    );
  }
  const now = clock.now();
  const secret = newSecret();
  const row = {
    id: Bun.randomUUIDv7(),
    tokenHash: sha256(secret),
    userName,
    userCode: newUserCode(),
    codeChallenge,
    requestAddress: request.address,
    client: printable(request.client),
    createdAt: now,
    expiresAt: after(now, config.challengeLifetime),
  };
  const retryAfter = await context.open.add(context, { userName, address: request.address });
  if (retryAfter > 0) {
    countChallenge(telemetry, "refused");
    throw new TooManyRequests(retryAfter, `Too many sign-in requests are open: try again in ${retryAfter} s`);
  }
  const key = toHex(row.tokenHash);
  // Before the answer is sent, so that this process recognises the first poll.
  context.known.add(key);
  await Promise.all([
    db.insert(challenge).values(row),
    db.execute(sql`select pg_catalog.pg_notify(${openedChannel}, ${key})`),
  ]);
  context.counts?.count("challenge.created", request.address);
  countChallenge(telemetry, "created");
  return { token: secret, userCode: row.userCode, bound: codeChallenge !== null };
}

function checkedCodeChallenge(codeChallenge?: string, method?: string): string | null {
  if (codeChallenge === undefined && method === undefined) return null;
  if (method !== "S256")
    throw new InvalidInput("code_challenge_method", "The code_challenge_method must be S256");
  if (!codeChallenge || !looksLikeSecret(codeChallenge)) {
    throw new InvalidInput("code_challenge", "The code_challenge must be a base64url SHA-256: 43 characters");
  }
  return codeChallenge;
}

/** The client's name for itself is shown to the user: one short line without control or direction characters. */
function printable(client: string): string {
  return client.replace(/[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu, "").slice(0, 120) || "unknown";
}
