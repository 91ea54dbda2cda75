import { and, sql } from "drizzle-orm";
import { accessRequest, accessRole } from "../../drizzle/schema/index.ts";
import type { Actor, Context } from "../context.ts";
import { endedBasis } from "./basis.ts";
import { mayRequest } from "./role.ts";

// AWS clients name a role by its ARN or part of it, and do not know about access roles. Any access role with the setting
// `roleArn` counts as an AWS role, whichever plugin serves it.

/** An AWS role that a user may request. Several access roles may have the same ARN, with different conditions. */
export interface AwsRole {
  slug: string;
  arn: string;
  accountId: string;
  /** The account's name, or its id if it has none. */
  accountName: string;
  /** Includes the path: everything after `role/` in the ARN. */
  name: string;
  /** Whether a lease requires a request, for its approval or to name its incident. */
  needsRequest: boolean;
  /** The actor's approved request, if it can be used now. */
  requestId?: number;
}

const arnPattern = /^arn:aws[a-z-]*:iam::(\d{12}):role\/([\w+=,.@/-]{1,576})$/;
/** More would need pagination, which Weep does not support. */
const mostRoles = 5000;

/** The AWS roles that the actor may request, ordered by slug. */
export async function listAwsRoles(
  { db, config }: Pick<Context, "db" | "config">,
  actor: Actor,
): Promise<AwsRole[]> {
  const arn = sql<string>`${accessRole.settings} ->> 'roleArn'`;
  // The usable approved request that ends last.
  const requestId = sql<number | null>`(select ${accessRequest.id} from ${accessRequest}
    where ${accessRequest.roleId} = access_role.id and ${accessRequest.userName} = ${actor.user}
      and ${accessRequest.state} = 'Approved' and ${accessRequest.expiresAt} > clock_timestamp()
      and ${endedBasis(accessRequest, config.adminGroup)} is null
    order by ${accessRequest.expiresAt} desc limit 1)`.mapWith(Number);
  const rows = await db
    .select({
      slug: accessRole.slug,
      arn,
      account: sql<string | null>`${accessRole.settings} ->> 'accountName'`,
      approval: accessRole.approval,
      incidentRequired: accessRole.incidentRequired,
      requestId,
    })
    .from(accessRole)
    .where(and(mayRequest(actor), sql`${arn} is not null`))
    .orderBy(accessRole.slug)
    .limit(mostRoles);
  return rows.flatMap(({ slug, arn, account, approval, incidentRequired, requestId }) => {
    const [, accountId, name] = arnPattern.exec(arn) ?? [];
    if (accountId === undefined || name === undefined) return [];
    const needsRequest = approval !== "none" || incidentRequired;
    const usable = (needsRequest && requestId) || undefined;
    const accountName = account ?? accountId;
    return [{ slug, arn, accountId, accountName, name, needsRequest, requestId: usable }];
  });
}

export type AwsRoleMatch =
  { role: AwsRole } | { none: "invalid_arn" | "unknown_account" | "no_match" } | { several: string[] };

/**
 * Finds the role for an ARN, or for all or part of a slug or name, ignoring case, if only one ARN matches. Of several
 * access roles with this ARN, it prefers one that can be used immediately.
 */
export function matchAwsRole(roles: readonly AwsRole[], wanted: string): AwsRoleMatch {
  if (/^arn:/i.test(wanted)) {
    const [, account] = arnPattern.exec(wanted) ?? [];
    if (account === undefined) return { none: "invalid_arn" };
    const exact = roles.filter(({ arn }) => arn === wanted);
    if (exact.length > 0) return { role: readiest(exact) };
    return { none: roles.some(({ accountId }) => accountId === account) ? "no_match" : "unknown_account" };
  }
  const text = wanted.toLowerCase();
  const names = ({ slug, name }: AwsRole) => [
    slug,
    name.toLowerCase(),
    name.toLowerCase().split("/").at(-1)!,
  ];
  const whole = roles.filter((role) => names(role).includes(text));
  const found =
    whole.length > 0
      ? whole
      : roles.filter((role) => [role.slug, role.arn.toLowerCase()].some((name) => name.includes(text)));
  const arns = [...new Set(found.map(({ arn }) => arn))];
  if (arns.length === 0 || text === "") return { none: "no_match" };
  if (arns.length > 1) return { several: arns };
  return { role: readiest(found) };
}

const readiest = (roles: readonly AwsRole[]): AwsRole =>
  roles.find(({ needsRequest }) => !needsRequest) ??
  roles.find(({ requestId }) => requestId !== undefined) ??
  roles[0]!;
