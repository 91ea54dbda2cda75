import { decodeJwt, decodeProtectedHeader, type JWTPayload } from "jose";
import type { Logout } from "../../core/auth/session/issuer_session.ts";
import { InvalidInput } from "../../platform/errors.ts";
import { isRecord } from "../../platform/record.ts";
import { KeysUnavailable, type RemoteKeys } from "./remote_keys.ts";

const event = "http://schemas.openid.net/event/backchannel-logout";
/** Of a token: time for an issuer to deliver it again. */
const longestAgeSeconds = 300;
const longestName = 255;

/**
 * Returns what a logout token says, if it is one of this issuer for this client (OpenID Connect Back-Channel Logout, 2.6).
 * Strangers can send tokens too, so the signature, which may cost a request for keys, comes last.
 *
 * @throws InvalidInput
 * @throws KeysUnavailable
 */
export async function verifyLogoutToken(
  token: string,
  { issuer, clientId, now }: { issuer: string; clientId: string; now: Date },
  keys: RemoteKeys,
): Promise<Logout> {
  const { header, claims } = read(token);
  // Without a type it may be from an older issuer; another type is another kind of token.
  if (![undefined, "jwt", "logout+jwt"].includes(header.typ?.toLowerCase().replace(/^application\//, "")))
    throw invalid("is a token of another type");
  const logout = logoutOf(claims);
  if (claims.iss !== issuer) throw invalid("has another iss than SVC_OIDC_ISSUER");
  if (![claims.aud].flat().includes(clientId)) throw invalid("has another aud than SVC_OIDC_CLIENT_ID");
  if (now.getTime() / 1000 - (claims.iat ?? 0) > longestAgeSeconds)
    throw invalid(`has no iat of the last ${longestAgeSeconds / 60} minutes`);
  try {
    await keys.verify(token, {
      issuer,
      audience: clientId,
      maxTokenAge: longestAgeSeconds,
      requiredClaims: ["iat", "jti"],
    });
  } catch (cause) {
    if (cause instanceof KeysUnavailable) throw cause;
    throw invalid("has expired, or is not signed by the issuer", cause);
  }
  return { ...logout, issuer };
}

function read(token: string) {
  try {
    return { header: decodeProtectedHeader(token), claims: decodeJwt(token) };
  } catch (cause) {
    throw invalid("is not a signed token (JWT)", cause);
  }
}

/** @throws InvalidInput for claims that are not those of a logout token, such as an ID token's */
function logoutOf({ events, jti, sub, sid, nonce }: JWTPayload): Omit<Logout, "issuer"> {
  if (!isRecord(events) || !Object.hasOwn(events, event) || !isRecord(events[event]))
    throw invalid(`has no event ${event}`);
  if (nonce !== undefined) throw invalid("has a nonce, as an ID token does");
  if (!isName(jti)) throw invalid("has no jti");
  if (sub === undefined && sid === undefined) throw invalid("has neither sub nor sid");
  if (![sub, sid].every((claim) => claim === undefined || isName(claim)))
    throw invalid("has an invalid sub or sid");
  return { subject: sub, sid: sid as string | undefined, jti };
}

const isName = (claim: unknown): claim is string =>
  typeof claim === "string" && claim !== "" && claim.length <= longestName;

function invalid(reason: string, cause?: unknown): InvalidInput {
  return new InvalidInput("logout_token", `The logout token ${reason}`, { cause });
}
