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
}

export const tokenType = "at+jwt"; // RFC 9068
export const tokenAudience = "svc";

/** Signs an access token. */
export function signToken(config: Config, key: SigningKey, claims: TokenClaims): Promise<string> {
  return new SignJWT({ groups: claims.groups })
    .setProtectedHeader({ alg: key.algorithm, kid: key.kid, typ: tokenType })
    .setIssuer(config.publicUrl)
    .setAudience(tokenAudience)
    .setSubject(claims.user)
    .setJti(claims.jti)
    .setIssuedAt(claims.issuedAt)
    .setExpirationTime(claims.expiresAt)
    .sign(key.privateKey);
}
