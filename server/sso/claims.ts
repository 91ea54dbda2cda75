import { canonicalUserName } from "../../core/auth/user/name.ts";
import type { Context, Identity } from "../../core/context.ts";
import { InvalidInput, Unauthenticated } from "../../platform/errors.ts";
import { isRecord } from "../../platform/record.ts";

const longestGroup = 256;

/**
 * Returns the user that the claims identify. An e-mail address that the issuer calls unverified identifies nobody,
 * since anyone can put one into a profile (OpenID Connect Core 5.7). Issuers that send no `email_verified` at all are
 * trusted.
 *
 * @throws Unauthenticated when the claim is missing, unverified or not a user name
 */
export function identityOf(
  { config, log }: Pick<Context, "config" | "log">,
  claims: Record<string, unknown>,
): Identity {
  const name = claimAt(claims, config.oidcUserClaim);
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
  const given = claimAt(claims, config.oidcGroupsClaim);
  const list = groupsIn(given);
  const groups = list.filter(isGroup);
  const claim = config.oidcGroupsClaim;
  if (given === undefined)
    log.info({ claim, claims: Object.keys(claims) }, "the sign-in provider sent no groups of a user");
  else if (groups.length < list.length)
    log.warn(
      { claim, ignored: list.length - groups.length },
      "values in the sign-in provider's groups of a user are no groups (SVC_OIDC_GROUPS_CLAIM)",
    );
  try {
    return { user: canonicalUserName(name, config.domain), groups };
  } catch (cause) {
    if (!(cause instanceof InvalidInput)) throw cause;
    throw new Unauthenticated("The sign-in provider's user name for you cannot be used here", { cause });
  }
}

/** The claim of that name or, for a name such as `realm_access.roles` (Keycloak), the member of a claim. */
export function claimAt(claims: Record<string, unknown>, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name];
  let value: unknown = claims;
  for (const key of name.split(".")) {
    if (!isRecord(value) || !Object.hasOwn(value, key)) return undefined;
    value = value[key];
  }
  return value;
}

/** A list of groups, one group, or an object whose keys are the groups and whose values are objects (Zitadel). */
function groupsIn(claim: unknown): unknown[] {
  if (claim === undefined || claim === null) return [];
  if (isRecord(claim))
    return Object.entries(claim).map(([key, value]) => (isRecord(value) ? key : undefined));
  return Array.isArray(claim) ? claim : [claim];
}

/** PostgreSQL cannot store NUL, nor half of a surrogate pair, which would return as another text. */
function isGroup(group: unknown): group is string {
  return (
    typeof group === "string" && group.length <= longestGroup && group.isWellFormed() && !group.includes("\0")
  );
}
