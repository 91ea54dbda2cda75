import { eq, type SQL, sql } from "drizzle-orm";
import type { Transaction } from "../../drizzle/client.ts";
import { accessLease, accessRequest, token } from "../../drizzle/schema/index.ts";

// The basis of access is everything that must remain true while a user has it: the role is enabled, the user is in one of
// its groups, the incident is open, the user takes part in it or can at least read it, and the token is not revoked.

/** The reasons for which access ends early, and their texts in descriptions and errors. */
export const endReasons = {
  role_disabled: "the role is disabled",
  signed_out: "the sign-in ended",
  approval_withdrawn: "the approval was withdrawn",
  group_lost: "the user is no longer in a group of the role",
  incident_deleted: "the incident was deleted",
  incident_closed: "the incident is closed",
  left_incident: "the user no longer takes part in the incident",
  incident_hidden: "the user can no longer read the incident",
  clock_set_back: "the database's clock was set back",
} as const;
export type EndReason = keyof typeof endReasons;

/**
 * Access that began later than now would last too long. A standby that takes over may be behind by a little.
 */
const mostBehindSeconds = 60;

/**
 * The first of `endReasons` that applies, or null. This one expression decides whether a request can be approved, whether
 * a lease can be issued or renewed, and whether a lease must end.
 *
 * @param adminGroup whose members may read every incident
 */
export function endedBasis(
  of: typeof accessLease | typeof accessRequest,
  adminGroup: string,
): SQL<EndReason | null> {
  const { roleId, userName, incidentId, incidentName, asParticipant } = of;
  const began = "decidedAt" in of ? sql`greatest(${of.createdAt}, ${of.decidedAt})` : sql`${of.createdAt}`;
  const newest = sql`(select ${token.groups} from ${token} where ${token.userName} = ${userName}
    order by ${token.issuedAt} desc limit 1)`;
  const takesPart = sql`exists (
      select from participant join individual on individual.id = participant.individual_id
      where participant.incident_id = ${incidentId} and participant.left_at is null
        and individual.email = ${userName})`;
  return sql<EndReason | null>`(select case
    when role.disabled_at is not null then 'role_disabled'
    when not ('*' = any(role.groups)) and not coalesce(role.groups && ${newest}, true) then 'group_lost'
    when ${incidentName} is not null and ${incidentId} is null then 'incident_deleted'
    when ${incidentId} is not null and
      (select status from incident where id = ${incidentId}) = 'Closed' then 'incident_closed'
    when ${asParticipant} and not ${takesPart} then 'left_incident'
    when (select visibility from incident where id = ${incidentId}) = 'Restricted'
      and not ${takesPart} and not coalesce(${newest} @> array[${adminGroup}::text], false) then 'incident_hidden'
    when ${began} > clock_timestamp() + ${mostBehindSeconds} * interval '1 second' then 'clock_set_back'
    end from access_role role where role.id = ${roleId})`;
}

/** The same for leases, which also end when the token that requested them is revoked, or their approval withdrawn. */
export const endedLease = (adminGroup: string) =>
  sql<EndReason | null>`coalesce(${endedBasis(accessLease, adminGroup)}, (
    select 'signed_out' from token where jti = ${accessLease.tokenId} and revoked_at is not null), (
    select 'approval_withdrawn' from access_request where id = ${accessLease.requestId} and state <> 'Approved'))`;

/** Why a request can no longer be approved or used, or null. */
export async function endReasonOfRequest(
  tx: Transaction,
  id: number,
  adminGroup: string,
): Promise<EndReason | null> {
  const [row] = await tx
    .select({ ended: endedBasis(accessRequest, adminGroup) })
    .from(accessRequest)
    .where(eq(accessRequest.id, id));
  return row?.ended ?? null;
}

/** Why a lease must end now, or null. */
export async function endReasonOfLease(
  tx: Transaction,
  id: number,
  adminGroup: string,
): Promise<EndReason | null> {
  // The query builder would omit the table names, which the subqueries need.
  const rows = await tx.execute<{ ended: EndReason | null }>(
    sql`select ${endedLease(adminGroup)} as ended from ${accessLease} where ${accessLease.id} = ${id}`,
  );
  return rows[0]?.ended ?? null;
}
