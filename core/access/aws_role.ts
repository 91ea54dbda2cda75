import { and, desc, eq, gt, inArray, sql } from "drizzle-orm";
import { accessRequest, accessRole } from "../../drizzle/schema/index.ts";
import type { Actor, Context } from "../context.ts";
import { mayRequest } from "./role.ts";

// AWS clients name a role by its ARN or by part of it, and know nothing of access roles. Any access role whose settings
// have a `roleArn` counts as one for AWS, whichever plugin serves it.

/** An AWS role that somebody may request. Two access roles may lead to the same ARN, with different conditions. */
export interface AwsRole {
  slug: string;
  arn: string;
  accountId: string;
  /** The account's name, or its id without one. */
  accountName: string;
  /** With the path, as in the ARN after `role/`. */
  name: string;
  /** Whether a lease needs an approved request, or one that names its incident. */
  needsRequest: boolean;
  /** An approved request of the actor that can be used now. */
  requestId?: number;
}

const arnPattern = /^arn:aws[a-z-]*:iam::(\d{12}):role\/([\w+=,.@/-]{1,576})$/;
/** An installation with more should answer pages, which Weep cannot ask for. */
const mostRoles = 5000;

/** The AWS roles that the actor may request, by slug. */
export async function listAwsRoles({ db }: Pick<Context, "db">, actor: Actor): Promise<AwsRole[]> {
  const arn = sql<string>`${accessRole.settings} ->> 'roleArn'`;
  const rows = await db
    .select({
      ...{ id: accessRole.id, slug: accessRole.slug, arn },
      account: sql<string | null>`${accessRole.settings} ->> 'accountName'`,
      ...{ approval: accessRole.approval, incidentRequired: accessRole.incidentRequired },
    })
    .from(accessRole)
    .where(and(mayRequest(actor), sql`${arn} is not null`))
    .orderBy(accessRole.slug)
    .limit(mostRoles);
  const approved = new Map<number, number>();
  const asking = rows.filter(({ approval, incidentRequired }) => approval !== "none" || incidentRequired);
  if (asking.length > 0) {
    const roleIds = asking.map(({ id }) => id);
    const requests = await db
      .select({ id: accessRequest.id, roleId: accessRequest.roleId })
      .from(accessRequest)
      .where(
        and(
          ...[eq(accessRequest.userName, actor.user), eq(accessRequest.state, "Approved")],
          ...[inArray(accessRequest.roleId, roleIds), gt(accessRequest.expiresAt, sql`clock_timestamp()`)],
        ),
      )
      .orderBy(desc(accessRequest.expiresAt));
    for (const { id, roleId } of requests.reverse()) approved.set(roleId, id);
  }
  return rows.flatMap(({ id, slug, arn, account, approval, incidentRequired }) => {
    const [, accountId, name] = arnPattern.exec(arn) ?? [];
    if (accountId === undefined || name === undefined) return [];
    const needsRequest = approval !== "none" || incidentRequired;
    const accountName = account ?? accountId;
    return [{ slug, arn, accountId, accountName, name, needsRequest, requestId: approved.get(id) }];
  });
}

export type AwsRoleMatch =
  { role: AwsRole } | { none: "invalid_arn" | "unknown_account" | "no_match" } | { several: string[] };

/**
 * The role that somebody means: its ARN; or its slug or name, whole or in part and in any case, if that leaves one ARN.
 * Of several access roles to this ARN, the one that can be used at once.
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
