import { SignJWT } from "jose";
import type { Config } from "../../config.ts";
import type { SigningKey } from "./keys.ts";

export interface TokenClaims {
  jti: string;
  user: string;
  groups: string[];
  /** Whole seconds. */
  issuedAt: Date;
  expiresAt: Date;
  /** The thumbprint of the certificate that the token needs, if it was collected with one. */
  certificate?: string;
}

export const tokenType = "at+jwt"; // RFC 9068
export const thumbprintClaim = "x5t#S256"; // RFC 8705, 3.1
export const tokenAudience = "svc";

/**
 * A request's headers may have 16 KiB (server/http/size.ts), and base64 makes a third more of this. The API reads the
 * groups from the database.
 */
const mostGroupBytes = 8192;

/** Signs an access token. The claim `groups` is missing if the groups are too long for a header. */
export function signToken(config: Config, key: SigningKey, claims: TokenClaims): Promise<string> {
  const { groups, certificate } = claims;
  const fits = Buffer.byteLength(JSON.stringify(groups)) <= mostGroupBytes;
  return new SignJWT({
    ...(fits ? { groups } : {}),
    ...(certificate ? { cnf: { [thumbprintClaim]: certificate } } : {}),
  })
    .setProtectedHeader({ alg: key.algorithm, kid: key.kid, typ: tokenType })
    .setIssuer(config.publicUrl)
    .setAudience(tokenAudience)
    .setSubject(claims.user)
    .setJti(claims.jti)
    .setIssuedAt(claims.issuedAt)
    .setExpirationTime(claims.expiresAt)
    .sign(key.privateKey);
}
