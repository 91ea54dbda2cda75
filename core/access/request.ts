import { and, arrayOverlaps, eq, gt, inArray, isNull, ne, or, type SQL, sql } from "drizzle-orm";
import type { Transaction } from "../../drizzle/client.ts";
import { lockName } from "../../drizzle/lock_name.ts";
import { accessRequest, accessRole, individual, token } from "../../drizzle/schema/index.ts";
import { after } from "../../platform/clock.ts";
import { Conflict, Forbidden, InvalidInput, NotFound } from "../../platform/errors.ts";
import { literally } from "../../platform/markdown.ts";
import { parseProse, parseText } from "../../platform/text.ts";
import type { Actor, Context } from "../context.ts";
import { databaseNow } from "../database_clock.ts";
import { individualsOf } from "../incident/task/people.ts";
import { type List, type ListQuery, startPage } from "../list/page.ts";
import { deliver } from "../outbox/deliver.ts";
import type { AppContext } from "../plugin/context.ts";
import { endedBasis } from "./basis.ts";
import { commandedBy, commanderOf, type IncidentOfAccess, incidentOfAccess } from "./incident.ts";
import { inWords, recordAccess } from "./record.ts";
import { requestableRole } from "./role.ts";
import type { RoleRow } from "./role_plugin.ts";

// A request asks for a role. Admins decide on it, with approval `commander` also the incident's commander, and with `group`
// the members of the role's approver groups instead, but never the user who made it (decide.ts). A role may require several
// approvals. Break-glass access is approved immediately and reviewed afterwards.

export const longestReason = 1000;
const pendingSeconds = 4 * 3600;
/** How many pending requests one user may have. */
const mostPending = 20;
/** Break-glass access notifies the admins or members of approver groups who signed in within this number of days. */
export const approverDays = 30;
const mostApprovers = 100;

export type RequestRow = typeof accessRequest.$inferSelect;
export type RequestState = RequestRow["state"];
/** A request with the slug of its role, and who may approve it. */
export type AccessRequest = RequestRow & { role: string } & ApprovalRule;
/** Who approves the requests for a role, and how many of them must. */
export type ApprovalRule = Pick<RoleRow, "approval" | "approverGroups" | "approvalsNeeded">;

export interface NewRequest {
  role: string;
  /** The incident's name, as in `INC-7`. */
  incident?: string;
  reason: string;
  /** In seconds. Defaults to the role's default duration. */
  duration?: number;
  breakGlass: boolean;
}

export const requestColumns = {
  request: accessRequest,
  role: accessRole.slug,
  approval: accessRole.approval,
  approverGroups: accessRole.approverGroups,
  approvalsNeeded: accessRole.approvalsNeeded,
};
export const viewOf = ({
  request,
  ...role
}: { request: RequestRow } & Omit<AccessRequest, keyof RequestRow>): AccessRequest => ({
  ...request,
  ...role,
});

/**
 * Requests a role. The request is approved immediately if the role needs no approval, and also with break-glass, which
 * notifies every approver.
 *
 * @throws NotFound for a role that the actor may not request
 * @throws InvalidInput
 * @throws Conflict also for a second break-glass request while the first one is in force
 * @throws Forbidden when the role does not allow break-glass access
 */
export async function requestAccess(
  context: AppContext,
  actor: Actor,
  wanted: NewRequest,
): Promise<AccessRequest> {
  const reason = parseProse("reason", parseText("reason", wanted.reason, longestReason));
  return context.db.transaction(async (tx) => {
    // For the maximum below. It comes first, because the incident is locked later.
    await lockName(tx, `svc access requests ${actor.user}`);
    const role = await requestableRole(tx, actor, wanted.role);
    const duration = durationOf(role, wanted.duration);
    const { breakGlass } = wanted;
    if (breakGlass && !role.breakGlass)
      throw new Forbidden(`${role.slug} does not allow break-glass access: request it without break-glass`);
    const incident = await incidentFor(tx, actor, role, wanted.incident);
    if (breakGlass && incident.incidentId === null)
      throw new InvalidInput("incident", "Break-glass access requires an incident");
    const at = await databaseNow(tx);
    const pending = and(eq(accessRequest.userName, actor.user), eq(accessRequest.state, "Pending"));
    if ((await tx.$count(accessRequest, pending)) >= mostPending)
      throw new Conflict(`You have ${mostPending} pending requests: cancel one with svc access cancel`);
    if (breakGlass) await refuseAnotherBreakGlass(tx, context, role, actor, at);
    const isApproved = breakGlass || role.approval === "none";
    const [made] = await tx
      .insert(accessRequest)
      .values({
        roleId: role.id,
        userName: actor.user,
        reason,
        duration,
        breakGlass,
        createdAt: at,
        ...incident,
        ...(isApproved
          ? { state: "Approved", decidedAt: at, decidedBy: "system", expiresAt: after(at, duration) }
          : { expiresAt: after(at, pendingSeconds) }),
      })
      .returning();
    const { approval, approverGroups, approvalsNeeded } = role;
    const request = { ...made!, role: role.slug, approval, approverGroups, approvalsNeeded };
    const how = breakGlass ? "used break-glass access to" : "requested";
    await recordAccess(tx, {
      ...changeOf(request, actor.user, at),
      action: "access.requested",
      description: `${actor.user} ${how} ${role.slug} for ${inWords(duration)}: ${firstLine(reason)}`,
      data: { request_id: request.id, role: role.slug, break_glass: breakGlass },
    });
    if (breakGlass) await notifyApprovers(tx, context, request);
    return request;
  });
}

/**
 * Each break-glass request sends messages to every approver, so a user can have only one for a role. One that an approver
 * denied, or its user cancelled, also counts until it would have ended: otherwise its user could simply repeat it.
 *
 * @throws Conflict
 */
async function refuseAnotherBreakGlass(
  tx: Transaction,
  { config }: AppContext,
  role: RoleRow,
  actor: Actor,
  at: Date,
): Promise<void> {
  const { state, expiresAt } = accessRequest;
  const usable = and(eq(state, "Approved"), sql`${endedBasis(accessRequest, config.adminGroup)} is null`);
  const [other] = await tx
    .select()
    .from(accessRequest)
    .where(
      and(
        eq(accessRequest.userName, actor.user),
        eq(accessRequest.roleId, role.id),
        eq(accessRequest.breakGlass, true),
        gt(expiresAt, at),
        or(inArray(state, ["Denied", "Cancelled"]), usable),
      ),
    )
    .orderBy(state)
    .limit(1);
  if (!other) return;
  const until = `until ${other.expiresAt.toISOString()}`;
  const verb = other.state === "Denied" ? "denied" : "cancelled";
  throw new Conflict(
    other.state === "Approved"
      ? `You already have break-glass access to ${role.slug}, by request ${other.id}, ${until}`
      : `${other.decidedBy} ${verb} your break-glass access to ${role.slug} (request ${other.id}): request it without break-glass ${until}`,
  );
}

/** The fields of a log entry that all changes of a request share. */
export const changeOf = (request: AccessRequest, actor: string, at: Date) => ({
  at,
  actor,
  incidentId: request.incidentId,
  subject: `request/${request.id}`,
  data: { request_id: request.id, role: request.role },
});

/** The first line of a reason, shortened for the timeline. */
function firstLine(text: string): string {
  const [line = ""] = text.trim().split(/\s*[\n\r\u2028\u2029]/);
  return line.length > 200 ? `${line.slice(0, 200)}…` : line;
}

/** @throws InvalidInput */
export function durationOf(role: RoleRow, seconds = role.defaultDuration): number {
  if (!Number.isInteger(seconds) || seconds < 60 || seconds > role.maxDuration)
    throw new InvalidInput(
      "duration",
      `The duration of ${role.slug} must be from 60 to ${role.maxDuration} seconds (${inWords(role.maxDuration)})`,
    );
  return seconds;
}

/** @throws InvalidInput when the role requires an incident and none is named */
export async function incidentFor(
  tx: Transaction,
  actor: Actor,
  role: RoleRow,
  name: string | undefined,
): Promise<IncidentOfAccess> {
  if (name !== undefined) return incidentOfAccess(tx, actor, name);
  if (role.incidentRequired)
    throw new InvalidInput("incident", `${role.slug} requires an incident, such as INC-7`);
  return { incidentId: null, incidentName: null, asParticipant: false };
}

// The conditions below have arrays, so that PostgreSQL evaluates them once and not for each request.

/** The roles with approval `group` whose approver groups the actor is in, or is not in. */
const groupRoles = ({ groups }: Actor, isMember: boolean) => sql`array(select id from ${accessRole}
  where approval = 'group' and (approver_groups && ${sql.param(groups, accessRole.approverGroups)}) = ${isMember})`;

/** Whether the actor may see and deny a request. Does not exclude the actor's own requests. */
export function mayDeny(actor: Actor): SQL {
  if (actor.admin) return sql`true`;
  const byCommander = sql`array(select id from ${accessRole} where approval = 'commander')`;
  return sql`(${accessRequest.roleId} = any(${groupRoles(actor, true)}) or
    ${accessRequest.roleId} = any(${byCommander}) and ${accessRequest.incidentId} = any(${commandedBy(actor)}))`;
}

/** Whether the actor may approve or review a request: admins only if its role is not for other approvers. */
export function mayApprove(actor: Actor): SQL {
  if (!actor.admin) return mayDeny(actor);
  return sql`${accessRequest.roleId} <> all(${groupRoles(actor, false)})`;
}

/** "group security or dba" */
export const approversOf = ({ approval, approverGroups }: ApprovalRule): string =>
  approval === "group" ? `group ${approverGroups.join(" or ")}` : approval;

const maySee = (actor: Actor): SQL => or(eq(accessRequest.userName, actor.user), mayDeny(actor))!;

const requests: List<"created_at"> = {
  name: "access_requests",
  id: accessRequest.id,
  sorts: { created_at: { by: accessRequest.createdAt, kind: "instant" } },
  defaultSort: "-created_at",
};

/** One page of the actor's requests and of those they may decide on, newest first. @throws InvalidInput */
export async function listRequests(
  { db }: Pick<Context, "db">,
  actor: Actor,
  { state, unreviewed, ...query }: ListQuery & { state?: RequestState; unreviewed?: boolean },
): Promise<{ items: AccessRequest[]; next_cursor: string | null }> {
  const page = startPage(requests, query, { state, unreviewed: unreviewed ? "true" : undefined });
  const conditions = [
    state && eq(accessRequest.state, state),
    unreviewed ? and(eq(accessRequest.breakGlass, true), isNull(accessRequest.reviewedAt)) : undefined,
  ];
  const rows = await db
    .select({ ...requestColumns, key: page.key })
    .from(accessRequest)
    .innerJoin(accessRole, eq(accessRole.id, accessRequest.roleId))
    .where(page.within(and(maySee(actor), ...conditions)))
    .orderBy(...page.orderBy)
    .limit(page.limit);
  return page.finish(rows.map(({ key, ...row }) => ({ item: viewOf(row), key })));
}

/** @throws NotFound also for a request that the actor may not see */
export async function getRequest(
  { db }: Pick<Context, "db">,
  actor: Actor,
  id: number,
): Promise<AccessRequest> {
  const [found] = await db
    .select(requestColumns)
    .from(accessRequest)
    .innerJoin(accessRole, eq(accessRole.id, accessRequest.roleId))
    .where(and(eq(accessRequest.id, id), maySee(actor)));
  if (!found) throw new NotFound("There is no such access request");
  return viewOf(found);
}

/** The users who signed in recently and may approve, apart from an incident's commander. At most `mostApprovers`. */
export async function knownApprovers(
  db: Pick<Transaction, "selectDistinct">,
  { config, clock }: Pick<Context, "config" | "clock">,
  { approval, approverGroups }: ApprovalRule,
): Promise<string[]> {
  const since = after(clock.now(), -approverDays * 24 * 3600);
  const groups = approval === "group" ? approverGroups : [config.adminGroup];
  const rows = await db
    .selectDistinct({ user: token.userName })
    .from(token)
    .where(and(arrayOverlaps(token.groups, groups), gt(token.issuedAt, since)))
    .limit(mostApprovers);
  return rows.map(({ user }) => user);
}

/** Notifies everyone who could have approved: the known approvers, and the incident's commander except with groups. */
async function notifyApprovers(tx: Transaction, context: AppContext, request: AccessRequest): Promise<void> {
  const incidentId = request.incidentId!;
  // Approvers who never took part in an incident have no individual yet.
  const emails = await knownApprovers(tx, context, request);
  const known = await individualsOf(tx, emails, request.createdAt);
  const people = await tx
    .select({ id: individual.id })
    .from(individual)
    .where(
      and(
        ne(individual.email, request.userName),
        or(
          inArray(individual.id, [...known.values()]),
          request.approval === "group" ? undefined : inArray(individual.id, commanderOf(incidentId)),
        ),
      ),
    );
  const { id: requestId, role, userName, reason, duration } = request;
  const text = `${literally(userName)} used break-glass access to ${role} for ${inWords(duration)}: ${literally(reason)}

Review it: svc access review ${requestId}
End it: svc access deny ${requestId}`;
  await deliver(
    tx,
    context,
    people.map(({ id }) => ({
      key: { task: "access", what: `request-${requestId}`, whom: `i/${id}` },
      incidentId,
      individualId: id,
      message: { subject: `Break-glass access to ${role}`, text },
    })),
  );
}
