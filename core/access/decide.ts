import { and, eq, gt, inArray, isNull, lte, ne, sql } from "drizzle-orm";
import { accessRequest, accessRole } from "../../drizzle/schema/index.ts";
import { after } from "../../platform/clock.ts";
import { Conflict, Forbidden } from "../../platform/errors.ts";
import { parseText } from "../../platform/text.ts";
import type { Actor, Context } from "../context.ts";
import { databaseNow } from "../database_clock.ts";
import { lockIncidentOf, lockIncidents } from "../incident/incident/lock.ts";
import { type EndReason, endedBasis, endReasonOfRequest, endReasons } from "./basis.ts";
import { recordAccess } from "./record.ts";
import {
  type AccessRequest,
  approversOf,
  changeOf,
  getRequest,
  longestReason,
  mayApprove,
  mayDeny,
  type RequestState,
  requestColumns,
  viewOf,
} from "./request.ts";

// Each decision begins with one conditional UPDATE, which locks the request, so of two concurrent decisions one fails.

/**
 * Approves or denies a request. If its role now requires more approvals, it stays Pending. The requested duration starts at
 * the last approval. Denying an approved request withdraws the approval, which ends its leases.
 *
 * @throws NotFound also for a request that the actor may not see
 * @throws Forbidden for the actor's own request, or if others must approve
 * @throws Conflict when the request is already decided or approved by the actor, has expired, or has lost its basis
 */
export async function decideRequest(
  { db, config }: Context,
  actor: Actor,
  { id, decision, note }: { id: number; decision: "Approved" | "Denied"; note?: string },
): Promise<AccessRequest> {
  const parsedNote = note === undefined ? null : parseText("note", note, longestReason);
  const approves = decision === "Approved";
  return db.transaction(async (tx) => {
    // An approver by group may not be able to see its incident.
    await getRequest({ db: tx }, actor, id);
    await lockIncidentOf(tx, accessRequest, id);
    const at = await databaseNow(tx);
    const [changed] = await tx
      .update(accessRequest)
      .set(
        approves
          ? {
              approvedBy: sql`array_append(${accessRequest.approvedBy}, ${actor.user})`,
              note: sql`coalesce(${parsedNote}, ${accessRequest.note})`,
            }
          : { note: parsedNote },
      )
      .where(
        and(
          eq(accessRequest.id, id),
          inArray(accessRequest.state, decidable[decision]),
          gt(accessRequest.expiresAt, at),
          ne(accessRequest.userName, actor.user),
          ...(approves
            ? [
                mayApprove(actor),
                sql`${actor.user} <> all(${accessRequest.approvedBy})`,
                sql`${endedBasis(accessRequest, config.adminGroup)} is null`,
              ]
            : [mayDeny(actor)]),
        ),
      )
      .returning({ id: accessRequest.id });
    const request = await getRequest({ db: tx }, actor, id);
    if (!changed) {
      const ended = await endReasonOfRequest(tx, id, config.adminGroup);
      throw undecidable(request, actor, decision, ended, at);
    }
    const change = changeOf(request, actor.user, at);
    const { approvedBy, approvalsNeeded: needed } = request;
    await recordAccess(tx, {
      ...change,
      action: approves ? "access.approved" : "access.denied",
      description: `${actor.user} ${decision.toLowerCase()} ${request.role} for ${request.userName}${
        approves && needed > 1 ? ` (${approvedBy.length} of ${needed})` : ""
      }`,
      data: {
        ...change.data,
        ...(approves ? { approvals: approvedBy.length, approvals_needed: needed } : {}),
        ...(parsedNote === null ? {} : { note: parsedNote }),
      },
    });
    if (approves && approvedBy.length < needed) return request;
    await tx
      .update(accessRequest)
      .set({
        state: decision,
        decidedAt: at,
        decidedBy: actor.user,
        ...(approves ? { expiresAt: after(at, request.duration) } : {}),
      })
      .where(eq(accessRequest.id, id));
    return getRequest({ db: tx }, actor, id);
  });
}

/** The states in which a request can be decided. */
const decidable: Record<"Approved" | "Denied" | "Cancelled", RequestState[]> = {
  Approved: ["Pending"],
  Denied: ["Pending", "Approved"],
  Cancelled: ["Pending", "Approved"],
};

function undecidable(
  request: AccessRequest,
  actor: Actor,
  decision: keyof typeof decidable,
  ended: EndReason | null,
  at: Date,
): Error {
  const { state, decidedBy, userName, expiresAt } = request;
  if (!decidable[decision].includes(state))
    return new Conflict(`The request is already ${state}${decidedBy ? `, by ${decidedBy}` : ""}`);
  if (decision !== "Cancelled" && userName === actor.user)
    return new Forbidden("You cannot approve or deny your own request: to end it, cancel it");
  if (expiresAt <= at) return new Conflict("The request has expired");
  if (request.approvedBy.includes(actor.user))
    return new Conflict(
      `You already approved this request: it has ${request.approvedBy.length} of ${request.approvalsNeeded} approvals`,
    );
  if (!isApprover(actor, request)) return notAnApprover(request, "approve");
  return new Conflict(`The request can no longer be approved: ${ended ? endReasons[ended] : "try again"}`);
}

/** Whether an actor who may see the request may also approve it, as in `mayApprove`. */
const isApprover = ({ groups }: Actor, { approval, approverGroups }: AccessRequest): boolean =>
  approval !== "group" || approverGroups.some((group) => groups.includes(group));

const notAnApprover = (request: AccessRequest, verb: "approve" | "review") =>
  new Forbidden(`Only members of ${approversOf(request)} can ${verb} it, even though admins can deny it`);

/**
 * Cancels the actor's own request. If it is approved, its leases end.
 *
 * @throws NotFound
 * @throws Forbidden
 * @throws Conflict when it was denied or cancelled, or has expired
 */
export async function cancelRequest({ db }: Context, actor: Actor, id: number): Promise<AccessRequest> {
  return db.transaction(async (tx) => {
    await lockIncidentOf(tx, accessRequest, id, actor);
    const at = await databaseNow(tx);
    const [cancelled] = await tx
      .update(accessRequest)
      .set({ state: "Cancelled", decidedAt: at, decidedBy: actor.user })
      .where(
        and(
          eq(accessRequest.id, id),
          eq(accessRequest.userName, actor.user),
          inArray(accessRequest.state, decidable.Cancelled),
          gt(accessRequest.expiresAt, at),
        ),
      )
      .returning({ id: accessRequest.id });
    const request = await getRequest({ db: tx }, actor, id);
    if (!cancelled) {
      if (request.userName !== actor.user)
        throw new Forbidden("Only the user who made the request can cancel it: deny it instead");
      throw undecidable(request, actor, "Cancelled", null, at);
    }
    await recordAccess(tx, {
      ...changeOf(request, actor.user, at),
      action: "access.cancelled",
      description: `${actor.user} cancelled the request for ${request.role}`,
    });
    return request;
  });
}

/** Records that break-glass access was reviewed. @throws NotFound @throws Forbidden @throws Conflict */
export async function reviewRequest({ db }: Context, actor: Actor, id: number): Promise<AccessRequest> {
  return db.transaction(async (tx) => {
    await getRequest({ db: tx }, actor, id);
    await lockIncidentOf(tx, accessRequest, id);
    const at = await databaseNow(tx);
    const [reviewed] = await tx
      .update(accessRequest)
      .set({ reviewedAt: at, reviewedBy: actor.user })
      .where(
        and(
          eq(accessRequest.id, id),
          eq(accessRequest.breakGlass, true),
          isNull(accessRequest.reviewedAt),
          ne(accessRequest.userName, actor.user),
          mayApprove(actor),
        ),
      )
      .returning({ id: accessRequest.id });
    const request = await getRequest({ db: tx }, actor, id);
    if (!reviewed) {
      if (request.userName === actor.user) throw new Forbidden("You cannot review your own access");
      if (!isApprover(actor, request)) throw notAnApprover(request, "review");
      throw new Conflict(
        request.breakGlass
          ? `${request.reviewedBy} already reviewed this request`
          : "Only break-glass requests are reviewed",
      );
    }
    await recordAccess(tx, {
      ...changeOf(request, actor.user, at),
      action: "access.reviewed",
      description: `${actor.user} reviewed ${request.userName}'s break-glass access to ${request.role}`,
    });
    return request;
  });
}

/** Expires the requests that nobody decided on in time, but leaves locked ones for the next call. @returns how many */
export async function expireRequests({ db }: Pick<Context, "db">): Promise<number> {
  return db.transaction(async (tx) => {
    const at = await databaseNow(tx);
    const due = await tx
      .select({ id: accessRequest.id, incidentId: accessRequest.incidentId })
      .from(accessRequest)
      .where(and(eq(accessRequest.state, "Pending"), lte(accessRequest.expiresAt, at)))
      .for("no key update", { skipLocked: true });
    const locked = await lockIncidents(
      tx,
      due.map(({ incidentId }) => incidentId),
      { skipLocked: true },
    );
    const free = due.filter(({ incidentId: id }) => id === null || locked.has(id));
    if (free.length === 0) return 0;
    const expired = await tx
      .update(accessRequest)
      .set({ state: "Expired", decidedAt: at, decidedBy: "system" })
      .from(accessRole)
      .where(
        and(
          eq(accessRole.id, accessRequest.roleId),
          inArray(
            accessRequest.id,
            free.map(({ id }) => id),
          ),
        ),
      )
      .returning(requestColumns);
    for (const row of expired) {
      const request = viewOf(row);
      await recordAccess(tx, {
        ...changeOf(request, "system", at),
        action: "access.expired",
        description: `${request.userName}'s request for ${request.role} expired without a decision`,
      });
    }
    return expired.length;
  });
}
