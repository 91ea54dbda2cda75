import { and, arrayContains, eq, gt, inArray, isNull, lte, ne, or, type SQL, sql } from "drizzle-orm";
import type { Database, Transaction } from "../../drizzle/client.ts";
import { accessRequest, accessRole, individual, token } from "../../drizzle/schema/index.ts";
import { after } from "../../platform/clock.ts";
import { Conflict, Forbidden, InvalidInput, NotFound } from "../../platform/errors.ts";
import { parseProse, parseText } from "../../platform/text.ts";
import type { Actor, Context } from "../context.ts";
import { type List, type ListQuery, startPage } from "../list/page.ts";
import { deliver } from "../outbox/deliver.ts";
import type { PluginContext } from "../plugin/context.ts";
import { commands, type IncidentOfAccess, incidentOfAccess } from "./incident.ts";
import { inWords, recordAccess } from "./record.ts";
import { type RoleRow, requestableRole } from "./role.ts";

// A request asks for a role. Who may decide on it: an admin, or for `commander` also who commands its incident; never
// the one who asks. Each decision is one conditional UPDATE, so of two at once one is too late.

export const longestReason = 1000;
const pendingSeconds = 4 * 3600;
/** Of one user at a time. */
const mostPending = 20;
/** Who has signed in as an admin within so many days is told of a broken glass. */
const adminDays = 30;
const mostApprovers = 100;

export type RequestRow = typeof accessRequest.$inferSelect;
export type RequestState = RequestRow["state"];
/** With the slug of its role. */
export type AccessRequest = RequestRow & { role: string };

export interface NewRequest {
  role: string;
  /** Its name, `INC-7`. */
  incident?: string;
  reason: string;
  /** Seconds; the role's default unless given. */
  duration?: number;
  breakGlass: boolean;
}

const shown = { request: accessRequest, role: accessRole.slug };
const viewOf = ({ request, role }: { request: RequestRow; role: string }): AccessRequest => ({
  ...request,
  role,
});

/** The database's time: what expires is compared with nothing else. */
export async function databaseNow(db: Database | Transaction): Promise<Date> {
  const [row] = await db.execute<{ at: string }>(sql`select clock_timestamp() as at`);
  return new Date(row!.at);
}

/**
 * Asks for a role. One that needs no approval is approved at once, and so is one that breaks the glass, of which every
 * approver is told.
 *
 * @throws NotFound for a role that the actor may not request
 * @throws InvalidInput
 * @throws Conflict
 * @throws Forbidden when its glass cannot be broken
 */
export async function requestAccess(
  context: PluginContext,
  actor: Actor,
  wanted: NewRequest,
): Promise<AccessRequest> {
  const reason = parseProse("reason", parseText("reason", wanted.reason, longestReason));
  return context.db.transaction(async (tx) => {
    const role = await requestableRole(tx, actor, wanted.role);
    const duration = durationOf(role, wanted.duration);
    const { breakGlass } = wanted;
    if (breakGlass && !role.breakGlass)
      throw new Forbidden(`${role.slug} has no break-glass access: ask for approval`);
    const incident = await incidentFor(tx, actor, role, wanted.incident);
    if (breakGlass && incident.incidentId === null)
      throw new InvalidInput("incident", "Break-glass access is for an incident: name it");
    const at = await databaseNow(tx);
    const pending = and(eq(accessRequest.userName, actor.user), eq(accessRequest.state, "Pending"));
    if ((await tx.$count(accessRequest, pending)) >= mostPending)
      throw new Conflict(`You have ${mostPending} pending requests: cancel one with svc access cancel`);
    const isApproved = breakGlass || role.approval === "none";
    const [made] = await tx
      .insert(accessRequest)
      .values({
        ...{ roleId: role.id, userName: actor.user, reason, duration, breakGlass, createdAt: at },
        ...incident,
        ...(isApproved
          ? { state: "Approved", decidedAt: at, decidedBy: "system", expiresAt: after(at, duration) }
          : { expiresAt: after(at, pendingSeconds) }),
      })
      .returning();
    const request = { ...made!, role: role.slug };
    const how = breakGlass ? "broke the glass for" : "requested";
    await recordAccess(tx, {
      ...changeOf(request, actor.user, at),
      action: "access.requested",
      description: `${actor.user} ${how} ${role.slug} for ${inWords(duration)}: ${firstLine(reason)}`,
      data: { request_id: request.id, role: role.slug, break_glass: breakGlass },
    });
    if (breakGlass) await tellApprovers(tx, context, request);
    return request;
  });
}

const changeOf = (request: AccessRequest, actor: string, at: Date) => ({
  ...{ at, actor, incidentId: request.incidentId, subject: `request/${request.id}` },
  data: { request_id: request.id, role: request.role },
});

/** For a line of the timeline. */
function firstLine(text: string): string {
  const [line = ""] = text.trim().split(/\s*[\n\r\u2028\u2029]/);
  return line.length > 200 ? `${line.slice(0, 200)}…` : line;
}

/** @throws InvalidInput */
export function durationOf(role: RoleRow, seconds = role.defaultDuration): number {
  if (!Number.isInteger(seconds) || seconds < 60 || seconds > role.maxDuration)
    throw new InvalidInput(
      "duration",
      `The duration of ${role.slug} is from 60 to ${role.maxDuration} seconds (${inWords(role.maxDuration)})`,
    );
  return seconds;
}

/** @throws InvalidInput when the role wants one and none is named */
export async function incidentFor(
  tx: Transaction,
  actor: Actor,
  role: RoleRow,
  name: string | undefined,
): Promise<IncidentOfAccess> {
  if (name !== undefined) return incidentOfAccess(tx, actor, name);
  if (role.incidentRequired)
    throw new InvalidInput("incident", `${role.slug} is for an incident: name it, as in INC-7`);
  return { incidentId: null, incidentName: null, asParticipant: false };
}

/** Who may decide on a request, were it not their own. */
function mayDecide(actor: Actor): SQL {
  if (actor.admin) return sql`true`;
  const byCommander = sql`(select approval from ${accessRole} where id = ${accessRequest.roleId}) = 'commander'`;
  return and(byCommander, commands(sql`${actor.user}`, sql`${accessRequest.incidentId}`))!;
}

const maySee = (actor: Actor): SQL => or(eq(accessRequest.userName, actor.user), mayDecide(actor))!;

const requests: List<"created_at"> = {
  name: "access_requests",
  id: accessRequest.id,
  sorts: { created_at: { by: accessRequest.createdAt, kind: "instant" } },
  defaultSort: "-created_at",
};

/** One page of the actor's requests and of those that they may decide on, the newest first. @throws InvalidInput */
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
    .select({ ...shown, key: page.key })
    .from(accessRequest)
    .innerJoin(accessRole, eq(accessRole.id, accessRequest.roleId))
    .where(page.within(and(maySee(actor), ...conditions)))
    .orderBy(...page.orderBy)
    .limit(page.limit);
  return page.finish(rows.map(({ key, ...row }) => ({ item: viewOf(row), key })));
}

/** @throws NotFound also for one that the actor may not see */
export async function getRequest(
  { db }: Pick<Context, "db">,
  actor: Actor,
  id: number,
): Promise<AccessRequest> {
  const [found] = await db
    .select(shown)
    .from(accessRequest)
    .innerJoin(accessRole, eq(accessRole.id, accessRequest.roleId))
    .where(and(eq(accessRequest.id, id), maySee(actor)));
  if (!found) throw new NotFound("There is no such access request");
  return viewOf(found);
}

/**
 * Approves or denies a request. Approved, it can be used from now on for as long as was asked for.
 *
 * @throws NotFound also for one that the actor may not see
 * @throws Forbidden for one's own
 * @throws Conflict when it is decided already, has expired, or rests on something that is gone
 */
export async function decideRequest(
  { db }: Context,
  actor: Actor,
  { id, decision, note }: { id: number; decision: "Approved" | "Denied"; note?: string },
): Promise<AccessRequest> {
  const said = note === undefined ? null : parseText("note", note, longestReason);
  return db.transaction(async (tx) => {
    const at = await databaseNow(tx);
    const [decided] = await tx
      .update(accessRequest)
      .set({
        ...{ state: decision, decidedAt: at, decidedBy: actor.user, note: said },
        ...(decision === "Approved"
          ? {
              expiresAt: sql`${at.toISOString()}::timestamptz + make_interval(secs => ${accessRequest.duration})`,
            }
          : {}),
      })
      .where(
        and(
          ...[eq(accessRequest.id, id), eq(accessRequest.state, "Pending"), gt(accessRequest.expiresAt, at)],
          ...[ne(accessRequest.userName, actor.user), mayDecide(actor)],
          decision === "Approved" ? sql`${endedBasis(accessRequest)} is null` : undefined,
        ),
      )
      .returning({ id: accessRequest.id });
    const request = await getRequest({ db: tx }, actor, id);
    if (!decided) throw whyNot(request, actor, await basisOf(tx, id), at);
    const verb = decision.toLowerCase();
    await recordAccess(tx, {
      ...changeOf(request, actor.user, at),
      action: decision === "Approved" ? "access.approved" : "access.denied",
      description: `${actor.user} ${verb} ${request.role} for ${request.userName}`,
    });
    return request;
  });
}

function whyNot(request: AccessRequest, actor: Actor, ended: string | null, at: Date): Error {
  const { state, decidedBy, userName, expiresAt } = request;
  if (state !== "Pending")
    return new Conflict(`It is ${state} already${decidedBy ? `, by ${decidedBy}` : ""}`);
  if (userName === actor.user) return new Forbidden("Nobody decides on their own request: ask somebody else");
  if (expiresAt <= at) return new Conflict("It has expired: they have to ask again");
  return new Conflict(`It cannot be approved any more: ${endReasons[ended as EndReason] ?? "try again"}`);
}

/** Takes one's own request back. @throws NotFound @throws Conflict when it is decided already */
export async function cancelRequest({ db }: Context, actor: Actor, id: number): Promise<AccessRequest> {
  return db.transaction(async (tx) => {
    const at = await databaseNow(tx);
    const [cancelled] = await tx
      .update(accessRequest)
      .set({ state: "Cancelled", decidedAt: at, decidedBy: actor.user })
      .where(
        and(
          ...[eq(accessRequest.id, id), eq(accessRequest.userName, actor.user)],
          eq(accessRequest.state, "Pending"),
        ),
      )
      .returning({ id: accessRequest.id });
    const request = await getRequest({ db: tx }, actor, id);
    if (!cancelled)
      throw request.userName === actor.user
        ? new Conflict(`It is ${request.state} already`)
        : new Forbidden("Only who has asked cancels a request: deny it");
    await recordAccess(tx, {
      ...changeOf(request, actor.user, at),
      action: "access.cancelled",
      description: `${actor.user} cancelled the request for ${request.role}`,
    });
    return request;
  });
}

/** Says that broken glass was looked at. @throws NotFound @throws Forbidden @throws Conflict */
export async function reviewRequest({ db }: Context, actor: Actor, id: number): Promise<AccessRequest> {
  return db.transaction(async (tx) => {
    const at = await databaseNow(tx);
    const [reviewed] = await tx
      .update(accessRequest)
      .set({ reviewedAt: at, reviewedBy: actor.user })
      .where(
        and(
          ...[eq(accessRequest.id, id), eq(accessRequest.breakGlass, true), isNull(accessRequest.reviewedAt)],
          ...[ne(accessRequest.userName, actor.user), mayDecide(actor)],
        ),
      )
      .returning({ id: accessRequest.id });
    const request = await getRequest({ db: tx }, actor, id);
    if (!reviewed) {
      if (request.userName === actor.user) throw new Forbidden("Nobody reviews their own access");
      throw new Conflict(
        request.breakGlass ? `${request.reviewedBy} has reviewed it already` : "It broke no glass",
      );
    }
    await recordAccess(tx, {
      ...changeOf(request, actor.user, at),
      action: "access.reviewed",
      description: `${actor.user} reviewed the break-glass access of ${request.userName} to ${request.role}`,
    });
    return request;
  });
}

/** Ends requests on which nobody has decided in time. @returns how many */
export async function expireRequests({ db }: Pick<Context, "db">): Promise<number> {
  return db.transaction(async (tx) => {
    const at = await databaseNow(tx);
    const expired = await tx
      .update(accessRequest)
      .set({ state: "Expired", decidedAt: at, decidedBy: "system" })
      .from(accessRole)
      .where(
        and(
          eq(accessRole.id, accessRequest.roleId),
          ...[eq(accessRequest.state, "Pending"), lte(accessRequest.expiresAt, at)],
        ),
      )
      .returning(shown);
    for (const row of expired) {
      const request = viewOf(row);
      await recordAccess(tx, {
        ...changeOf(request, "system", at),
        action: "access.expired",
        description: `Nobody decided on the request of ${request.userName} for ${request.role}`,
      });
    }
    return expired.length;
  });
}

/** Why access ends before its time, with what people are told of it. */
export const endReasons = {
  role_disabled: "the role is disabled",
  signed_out: "its user signed out",
  group_lost: "its user is no longer in a group that may have it",
  incident_deleted: "its incident was deleted",
  incident_closed: "its incident is closed",
  left_incident: "its user takes no part in its incident any more",
} as const;
export type EndReason = keyof typeof endReasons;

/**
 * What is gone of all that access rests on, as the first of `endReasons`; null while everything is there. The one place
 * where that is said: for a request that is approved, a lease that is issued or renewed, and those that have to end.
 */
export function endedBasis(
  of: Record<"roleId" | "userName" | "incidentId" | "incidentName", SQL | unknown>,
): SQL<string | null> {
  const { roleId, userName, incidentId, incidentName, asParticipant } = of as Record<string, SQL>;
  const newest = sql`(select ${token.groups} from ${token} where ${token.userName} = ${userName}
    order by ${token.issuedAt} desc limit 1)`;
  return sql<string | null>`(select case
    when role.disabled_at is not null then 'role_disabled'
    when not ('*' = any(role.groups)) and not coalesce(role.groups && ${newest}, true) then 'group_lost'
    when ${incidentName} is not null and ${incidentId} is null then 'incident_deleted'
    when ${incidentId} is not null and
      (select status from incident where id = ${incidentId}) = 'Closed' then 'incident_closed'
    when ${asParticipant} and not exists (
      select from participant join individual on individual.id = participant.individual_id
      where participant.incident_id = ${incidentId} and participant.left_at is null
        and individual.email = ${userName}) then 'left_incident'
    end from access_role role where role.id = ${roleId})`;
}

async function basisOf(tx: Transaction, id: number): Promise<string | null> {
  const [row] = await tx
    .select({ ended: endedBasis(accessRequest) })
    .from(accessRequest)
    .where(eq(accessRequest.id, id));
  return row?.ended ?? null;
}

/** Those who could have decided: who commands the incident, and admins who have signed in lately. */
async function tellApprovers(tx: Transaction, context: PluginContext, request: AccessRequest): Promise<void> {
  const { config, clock } = context;
  const incidentId = request.incidentId!;
  const admins = tx
    .select({ user: token.userName })
    .from(token)
    .where(
      and(
        arrayContains(token.groups, [config.adminGroup]),
        gt(token.issuedAt, after(clock.now(), -adminDays * 24 * 3600)),
      ),
    );
  const people = await tx
    .select({ id: individual.id })
    .from(individual)
    .where(
      and(
        ne(individual.email, request.userName),
        or(inArray(individual.email, admins), commands(sql`${individual.email}`, sql`${incidentId}`)),
      ),
    )
    .limit(mostApprovers);
  const text = `${request.userName} took ${request.role} for ${inWords(request.duration)} without approval: ${request.reason}\n\nReview it: svc access review ${request.id}`;
  await deliver(
    tx,
    context,
    people.map(({ id }) => ({
      key: { task: "access", what: `request-${request.id}`, whom: `i/${id}` },
      ...{ incidentId, individualId: id },
      message: { subject: `Break-glass access to ${request.role}`, text },
    })),
  );
}
