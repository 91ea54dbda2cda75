import { canonicalUserName } from "../../core/auth/user/name.ts";
import type { Config } from "../../core/config.ts";
import type { Identity } from "../../core/context.ts";
import { InvalidInput, Unauthenticated } from "../../platform/errors.ts";

const longestGroup = 256;

/**
 * Returns the user that the claims identify. An e-mail address that the issuer calls unverified identifies nobody,
 * since anyone can put one into a profile (OpenID Connect Core 5.7). Issuers that send no `email_verified` at all are
 * trusted.
 *
 * @throws Unauthenticated when the claim is missing, unverified or not a user name
 */
export function identityOf(config: Config, claims: Record<string, unknown>): Identity {
  const name = claims[config.oidcUserClaim];
  if (typeof name !== "string") {
    throw new Unauthenticated("The sign-in provider did not identify you (SVC_OIDC_USER_CLAIM)");
  }
  const { email_verified: verified } = claims;
  if (
    config.oidcUserClaim === "email" &&
    verified !== undefined &&
    verified !== true &&
    verified !== "true"
  ) {
    throw new Unauthenticated("The sign-in provider has not verified your e-mail address");
  }
  const groups = claims[config.oidcGroupsClaim];
  const list = Array.isArray(groups) ? groups : groups === undefined ? [] : [groups];
  try {
    return {
      user: canonicalUserName(name, config.domain),
      groups: list.filter(isGroup),
    };
  } catch (cause) {
    if (!(cause instanceof InvalidInput)) throw cause;
    throw new Unauthenticated("The sign-in provider's user name for you cannot be used here", { cause });
  }
}

/** PostgreSQL cannot store NUL, nor half of a surrogate pair, which would return as another text. */
function isGroup(group: unknown): group is string {
  return (
    typeof group === "string" && group.length <= longestGroup && group.isWellFormed() && !group.includes("\0")
  );
}
