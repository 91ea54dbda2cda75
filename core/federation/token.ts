import { Type } from "@sinclair/typebox";
import { SignJWT } from "jose";
import { after } from "../../platform/clock.ts";
import { InvalidInput, Refused } from "../../platform/errors.ts";
import { tokenAudience } from "../auth/token/issue.ts";
import { Keys } from "../auth/token/keys.ts";
import type { Context } from "../context.ts";
import { federationIssuer } from "./issuer.ts";

/** Different from the type of an access token, so that neither can be used as the other (RFC 8725, 3.11). */
const federationTokenType = "JWT";
/** Short, because a token is used for one exchange. A stolen token soon becomes useless. */
export const longestFederationSeconds = 300;
/** OpenID Connect Core 1.0, section 2. */
const longestSubject = 255;

/** The setting `subject` of access roles. */
export const subjectSetting = Type.String({
  // The role comes first: a slug has no colon, so a pattern such as `role:deploy:user:*` matches only one role, whatever
  // the user name is.
  default: "role:{role}:user:{user}",
  maxLength: 500,
  pattern: "^([!-z|~]|\\{(user|role|incident)\\})+$",
  description:
    "the subject (`sub`); {user}, {role} and {incident} are replaced with the e-mail address, this role and the incident's name",
});
/** Any audience except that of our access tokens. */
export const audiencePattern = `^(?!${tokenAudience}$)[!-~]+$`;

export interface FederationClaims {
  audience: string;
  /** With placeholders. */
  subject: string;
  user: string;
  role: string;
  leaseId: number;
  incident?: string;
  issuedAt: Date;
  /** Limited to `longestFederationSeconds`. */
  seconds: number;
}

/**
 * Signs a token about a user for one audience, with the key that signs access tokens.
 *
 * @throws InvalidInput when the subject contains the incident and there is none
 * @throws Refused for an invalid subject or audience
 * @throws ConfigurationError without keys
 */
export async function signFederationToken(
  context: Context,
  claims: FederationClaims,
): Promise<{ token: string; subject: string; expiresAt: Date }> {
  const { audience, user, role, leaseId, incident, issuedAt } = claims;
  if (audience === tokenAudience)
    throw new Refused(`The audience ${tokenAudience} is reserved for svc itself`);
  const subject = subjectOf(claims);
  const seconds = Math.floor(Math.min(claims.seconds, longestFederationSeconds));
  const start = new Date(Math.floor(issuedAt.getTime() / 1000) * 1000);
  const expiresAt = after(start, seconds);
  const key = await federationKeys(context).signing();
  const token = await new SignJWT({ user, role, lease: leaseId, ...(incident ? { incident } : {}) })
    .setProtectedHeader({ alg: key.algorithm, kid: key.kid, typ: federationTokenType })
    .setIssuer(federationIssuer(context.config))
    .setAudience(audience)
    .setSubject(subject)
    .setJti(crypto.randomUUID())
    .setIssuedAt(start)
    .setExpirationTime(expiresAt)
    .sign(key.privateKey);
  return { token, subject, expiresAt };
}

/** @throws InvalidInput @throws Refused */
function subjectOf({ subject, user, role, incident }: FederationClaims): string {
  const values: Record<string, string | undefined> = { user, role, incident };
  const made = subject.replace(/\{(user|role|incident)\}/g, (_, name: string) => {
    const value = values[name];
    if (value === undefined)
      throw new InvalidInput(
        "incident",
        "The subject of the token contains {incident}: name one with --incident",
      );
    return value;
  });
  if (made.length > longestSubject) throw new Refused(`The subject exceeds ${longestSubject} characters`);
  return made;
}

const keysOf = new WeakMap<Context, Keys>();

/** One instance per context, because it caches keys. @throws ConfigurationError */
export function federationKeys(context: Context): Keys {
  let keys = keysOf.get(context);
  if (!keys) {
    keys = new Keys(context);
    keysOf.set(context, keys);
  }
  return keys;
}
