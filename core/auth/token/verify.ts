import { eq, sql } from "drizzle-orm";
import { errors, jwtVerify } from "jose";
import { preparedQuery } from "../../../drizzle/prepared_query.ts";
import { token } from "../../../drizzle/schema/index.ts";
import { InvalidToken } from "../../../platform/errors.ts";
import { audit } from "../../audit.ts";
import type { Actor, Context } from "../../context.ts";
import { endTokens } from "../../end_tokens.ts";
import type { KnownToken, KnownTokens } from "../../known_tokens.ts";
import { thumbprintClaim, tokenAudience, tokenType } from "./issue.ts";
import type { Keys } from "./keys.ts";

/** What verifying a token needs. */
type TokenContext = Context & { keys: Keys; tokens: KnownTokens };

/**
 * Returns the holder of this access token. It must be ours in every respect: key, algorithm, type, issuer, audience,
 * times. The database must know it and not have it revoked; while it tells this process of revocations, it is asked once.
 *
 * @param certificate the thumbprint of the client's certificate: a token that was collected with one is valid only with
 *   that one (RFC 8705, 3)
 * @throws InvalidToken with one of two sentences: expired, or not valid
 */
export async function verifyToken(
  context: TokenContext,
  jwt: string,
  certificate?: string,
): Promise<{ actor: Actor; bound: boolean }> {
  const { clock, config, keys, tokens } = context;
  const remembered = tokens.recall(jwt);
  const isCurrent =
    remembered &&
    remembered.exp > Math.floor(clock.now().getTime() / 1000) &&
    (await keys.verification(remembered.kid));
  const known = isCurrent ? remembered : await readToken(context, jwt);
  const bound = known.certificate !== undefined;
  if (bound && known.certificate !== certificate) throw notGood();
  const { jti, user, groups, expiresAt } = known;
  const admin = groups.includes(config.adminGroup);
  return { actor: { kind: "user", user, groups, admin, tokenId: jti, expiresAt }, bound };
}

/** Verifies a token's signature and claims, and reads its row. @throws InvalidToken */
async function readToken(
  { db, clock, config, keys, tokens }: TokenContext,
  jwt: string,
): Promise<KnownToken> {
  const { sequence } = tokens;
  const { payload, protectedHeader } = await jwtVerify(
    jwt,
    async ({ kid, alg }) => {
      const key = kid ? await keys.verification(kid) : undefined;
      // A key may only be used with its own algorithm (RFC 8725, 3.1).
      if (!key || key.algorithm !== alg) throw new errors.JWKSNoMatchingKey();
      return key.publicKey;
    },
    {
      algorithms: ["ES256", "Ed25519"],
      issuer: config.publicUrl,
      audience: tokenAudience,
      typ: tokenType,
      requiredClaims: ["exp", "iat", "sub", "jti"],
      currentDate: clock.now(),
    },
  ).catch((cause: unknown) => {
    if (cause instanceof errors.JWTExpired)
      throw new InvalidToken("The access token has expired: svc login", { cause });
    if (cause instanceof errors.JOSEError || cause instanceof TypeError) throw notGood(cause);
    throw cause;
  });
  const { cnf, exp, jti } = payload as { cnf?: Record<string, unknown>; exp: number; jti: string };
  const certificate = cnf?.[thumbprintClaim];
  if (cnf && typeof certificate !== "string") throw notGood();
  if (!uuid.test(jti)) throw notGood();
  const [issued] = await issuedToken(db).execute({ jti });
  if (!issued || issued.revokedAt || issued.userName !== payload.sub) throw notGood();
  const { userName: user, groups, expiresAt } = issued;
  const known: KnownToken = { jti, user, groups, exp, expiresAt, kid: protectedHeader.kid! };
  if (typeof certificate === "string") known.certificate = certificate;
  tokens.remember(jwt, known, sequence);
  return known;
}

const issuedToken = preparedQuery((db) =>
  db
    .select()
    .from(token)
    .where(eq(token.jti, sql.placeholder("jti")))
    .prepare("token"),
);

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

function notGood(cause?: unknown): InvalidToken {
  return new InvalidToken("The access token is not valid: svc login", { cause });
}

/** Ends the actor's token, or certificate sign-in. Repeating it is not an error. */
export async function revokeToken({ db, clock }: Context, actor: Actor, address: string): Promise<void> {
  const at = clock.now();
  await db.transaction(async (tx) => {
    await endTokens(tx, sql`select ${actor.tokenId}::uuid`, at);
    await audit(tx, { at, actor: actor.user, action: "token.revoked", address, subject: actor.tokenId });
  });
}
