import { canonicalUserName } from "../../core/auth/user/name.ts";
import type { Context, Identity } from "../../core/context.ts";
import { InvalidInput, Unauthenticated } from "../../platform/errors.ts";
import { isRecord } from "../../platform/record.ts";
import { isSeen, parseName, printable } from "../../platform/text.ts";

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
  // Null is the same as no claim.
  const isVerified = [undefined, null, true, "true"].includes(
    verified as string | boolean | null | undefined,
  );
  if (config.oidcUserClaim === "email" && !isVerified) {
    throw new Unauthenticated("The sign-in provider has not verified your e-mail address");
  }
  const given = claimAt(claims, config.oidcGroupsClaim);
  // As in SVC_ADMIN_GROUP, SVC_MTLS_GROUPS and access roles: both spellings of é are one group.
  const list = groupsIn(given).map((one) => (typeof one === "string" ? one.normalize("NFC") : one));
  const groups = list.filter(isGroup);
  const ignored = list.filter((one) => !isGroup(one));
  const claim = config.oidcGroupsClaim;
  if (given === undefined && isElsewhere(claims, claim))
    log.warn(
      { claim, user: name },
      "a user has so many groups that Entra ID sent none of them (group overage): let it send app roles, or only the groups that are assigned to the application",
    );
  else if (given === undefined)
    log.info({ claim, claims: Object.keys(claims) }, "the sign-in provider sent no groups of a user");
  else if (ignored.length > 0)
    log.warn(
      {
        claim,
        user: name,
        ignored: ignored.length,
        first: printable(String(JSON.stringify(ignored[0])), 100),
      },
      "values in the sign-in provider's groups of a user are no groups (SVC_OIDC_GROUPS_CLAIM)",
    );
  try {
    return { user: canonicalUserName(name, config.domain), groups, name: personName(claims.name) };
  } catch (cause) {
    if (!(cause instanceof InvalidInput)) throw cause;
    throw new Unauthenticated("The sign-in provider's user name for you cannot be used here", { cause });
  }
}

/** Whether the issuer says only where the claim can be fetched (OpenID Connect Core 5.6.2, distributed claims). */
function isElsewhere({ _claim_names: names }: Record<string, unknown>, claim: string): boolean {
  return isRecord(names) && Object.hasOwn(names, claim);
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

/** The claim `name` (OpenID Connect Core 5.1), if a record may have it as a name. */
function personName(claim: unknown): string | undefined {
  try {
    const name = typeof claim === "string" ? parseName("name", claim) : undefined;
    return name !== undefined && printable(name) === name ? name : undefined;
  } catch {
    return undefined;
  }
}

/** A list of groups, one group, or an object whose keys are the groups and whose values are objects (Zitadel). */
function groupsIn(claim: unknown): unknown[] {
  if (claim === undefined || claim === null) return [];
  if (isRecord(claim))
    return Object.entries(claim).map(([key, value]) => (isRecord(value) ? key : undefined));
  return Array.isArray(claim) ? claim : [claim];
}

/** PostgreSQL can store it, and a terminal shows it as it is. */
function isGroup(group: unknown): group is string {
  return (
    typeof group === "string" && group.length <= longestGroup && isSeen(group) && printable(group) === group
  );
}
