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

/** Signs an access token. */
export function signToken(config: Config, key: SigningKey, claims: TokenClaims): Promise<string> {
  const { groups, certificate } = claims;
  return new SignJWT({ groups, ...(certificate ? { cnf: { [thumbprintClaim]: certificate } } : {}) })
    .setProtectedHeader({ alg: key.algorithm, kid: key.kid, typ: tokenType })
    .setIssuer(config.publicUrl)
    .setAudience(tokenAudience)
    .setSubject(claims.user)
    .setJti(claims.jti)
    .setIssuedAt(claims.issuedAt)
    .setExpirationTime(claims.expiresAt)
    .sign(key.privateKey);
}
