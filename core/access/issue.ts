import { and, eq, isNull, sql } from "drizzle-orm";
import type { Transaction } from "../../drizzle/client.ts";
import { lockName } from "../../drizzle/lock_name.ts";
import { accessLease, accessRequest } from "../../drizzle/schema/index.ts";
import { after } from "../../platform/clock.ts";
import { Conflict, InvalidInput, NotFound, Unavailable } from "../../platform/errors.ts";
import { newSecret } from "../../platform/secret.ts";
import { type Actor, tokenOf } from "../context.ts";
import { databaseNow } from "../database_clock.ts";
import { lockIncidents } from "../incident/incident/lock.ts";
import type { ActivePlugin } from "../plugin/call.ts";
import type { AppContext } from "../plugin/context.ts";
import type { MethodAnswer } from "../plugin/methods.ts";
import { endReasonOfLease, endReasonOfRequest, endReasons } from "./basis.ts";
import { markEnding, revokeUnissued } from "./end.ts";
import { recordLeaseIssue } from "./issue_duration.ts";
import { changeOf, earlier, earlierEnd, type Lease, type LeaseRow, marginSeconds } from "./lease.ts";
import { inWords, recordAccess } from "./record.ts";
import { durationOf, incidentFor } from "./request.ts";
import { requestableRole } from "./role.ts";
import { callForRole, pluginOf, type RoleRow } from "./role_plugin.ts";

/** How many unfinished leases of one plugin a user may have. */
const mostLeases = 100;
/**
 * The same for credentials that exist only at the client. Weep and the AWS tools request new ones for each command, and
 * svc cannot end them before they expire.
 */
const mostExpiringLeases = 2000;
/** How long a lease lasts that its client renews, and so the time after which it ends if the client is killed. */
const renewedSeconds = 15 * 60;
/** The fields of a request that a plugin may refuse. */
const requestFields: ReadonlySet<string> = new Set(["public_key", "duration", "incident"]);

export type Credential = Pick<MethodAnswer<"credential", "issue">, "kind" | "fields">;

export interface NewLease {
  role: string;
  /** An approved request of the actor. Required if the role needs approval. */
  requestId?: number;
  incident?: string;
  duration?: number;
  /**
   * The client renews the lease while it needs it, until `duration` is over. It gets a short one, unless its plugin cannot
   * renew it.
   */
  renewable?: boolean;
  /** The client's public key, for kinds of credentials that certify one. */
  publicKey?: string;
  idempotencyKey?: string;
  /** Aborts when the client no longer waits. The lease then ends, because nobody has the credential. */
  signal?: AbortSignal;
}

/**
 * Issues a credential. The secret is not stored. A client that did not receive the response repeats the request with the
 * same idempotency key, which ends the first lease.
 *
 * @throws NotFound for a role that the actor may not request
 * @throws InvalidInput also when the plugin rejects the public key, the duration or the incident
 * @throws Conflict when approval is missing or no longer valid
 * @throws Unavailable when the plugin fails
 */
export async function issueLease(
  context: AppContext,
  actor: Actor,
  wanted: NewLease,
): Promise<{ lease: Lease; credential: Credential }> {
  const began = performance.now();
  const record = (outcome: "issued" | "failed") =>
    recordLeaseIssue(context.telemetry, (performance.now() - began) / 1000, outcome);
  try {
    const issued = await issueAtTarget(context, actor, wanted);
    record("issued");
    const own = eq(accessLease.id, issued.lease.id);
    if (wanted.signal?.aborted)
      await context.db.transaction((tx) => markEnding(tx, "system", "not_received", own));
    return issued;
  } catch (error) {
    if (error instanceof Unavailable) record("failed");
    throw error;
  }
}

async function issueAtTarget(
  context: AppContext,
  actor: Actor,
  wanted: NewLease,
): Promise<{ lease: Lease; credential: Credential }> {
  const { lease, role, plugin, isRenewed } = await context.db.transaction((tx) =>
    beginLease(tx, context, actor, wanted),
  );
  const { id: leaseId, name, expiresAt, createdAt } = lease;
  const secondsUntil = (end: Date) => Math.round((end.getTime() - createdAt.getTime()) / 1000);
  const seconds = secondsUntil(expiresAt);
  const period = isRenewed
    ? `while a command runs, for at most ${inWords(secondsUntil(lease.maxExpiresAt))}`
    : `for ${inWords(seconds)}`;
  const outcome = await callForRole(
    context,
    { role, plugin },
    "issue",
    {
      leaseId,
      name,
      user: actor.user,
      expiresAt: expiresAt.toISOString(),
      seconds,
      ...(wanted.publicKey === undefined ? {} : { publicKey: wanted.publicKey }),
      ...(lease.incidentName === null ? {} : { incident: lease.incidentName }),
    },
    { key: name },
  );
  if (!outcome.ok) {
    const { reason, detail, frames } = outcome;
    context.log.warn({ plugin: plugin.slug, lease: leaseId, reason, frames }, `plugin failed: ${detail}`);
    // After a timeout the plugin may still be creating the credential.
    const endReason = reason === "timeout" || reason === "aborted" ? "interrupted" : "not_issued";
    await revokeUnissued(context, leaseId, { endReason, error: detail });
    const { field } = outcome;
    if (field !== undefined && requestFields.has(field)) throw new InvalidInput(field, detail);
    throw new Unavailable(`${role.slug}: ${detail}`);
  }
  const { kind, fields, handle } = outcome.value;
  const end = earlierEnd(outcome.value, expiresAt);
  if (end <= createdAt) {
    const error = `${plugin.slug} returned a credential that has already expired: check the clock of its target`;
    await revokeUnissued(context, leaseId, { endReason: "not_issued", error });
    throw new Unavailable(`${role.slug}: ${error}`);
  }
  const active = await context.db.transaction(async (tx) => {
    await lockIncidents(tx, [lease.incidentId]);
    const issuedAt = await databaseNow(tx);
    const [row] = await tx
      .update(accessLease)
      .set({ state: "Active", issuedAt, handle: handle ?? null, expiresAt: end, dueAt: end })
      .where(and(eq(accessLease.id, leaseId), eq(accessLease.state, "Issuing")))
      .returning();
    if (!row) return undefined;
    await recordAccess(tx, {
      ...changeOf({ ...row, role: role.slug }, actor.user, issuedAt),
      action: "access.issued",
      description: `${actor.user} received ${role.slug} ${period}`,
    });
    return { ...row, role: role.slug };
  });
  if (!active) {
    // A revocation began in the meantime, possibly before the credential existed.
    await revokeUnissued(context, leaseId, {
      endReason: "interrupted",
      error: "The plugin issued the credential after the lease ended",
    });
    throw new Conflict("The access ended while it was being issued: try again");
  }
  return { lease: active, credential: { kind, fields } };
}

async function beginLease(
  tx: Transaction,
  context: AppContext,
  actor: Actor,
  wanted: NewLease,
): Promise<{ lease: LeaseRow; role: RoleRow; plugin: ActivePlugin<"credential">; isRenewed: boolean }> {
  const { config } = context;
  // For the maximum below. It comes first, because rows are locked later.
  await lockName(tx, `svc access leases ${actor.user}`);
  const role = await requestableRole(tx, actor, wanted.role);
  const plugin = pluginOf(context, role.pluginSlug);
  const at = await databaseNow(tx);
  const request =
    wanted.requestId === undefined ? undefined : await approvedRequest(tx, actor, role, wanted.requestId, at);
  if (!request && role.approval !== "none")
    throw new Conflict(`${role.slug} needs approval: svc access request ${role.slug} --reason ...`);
  if (wanted.publicKey !== undefined && plugin.publicKey === undefined)
    throw new InvalidInput(
      "public_key",
      `Credentials of ${role.slug} do not use a public key: leave out public_key`,
    );
  const name = request ? (request.incidentName ?? undefined) : wanted.incident;
  const incident = await incidentFor(tx, actor, role, name);
  const seconds = durationOf(role, wanted.duration ?? request?.duration);
  const limit = request?.expiresAt ?? after(at, role.maxDuration);
  const asked = earlier(after(at, seconds), limit);
  const isRenewed = wanted.renewable === true && plugin.methods.renew !== undefined;
  const { idempotencyKey = null } = wanted;
  if (idempotencyKey !== null)
    await markEnding(
      tx,
      actor.user,
      "asked_again",
      and(eq(accessLease.userName, actor.user), eq(accessLease.idempotencyKey, idempotencyKey)),
    );
  const most = plugin.revocable === "expiry" ? mostExpiringLeases : mostLeases;
  const byPlugin = sql`${accessLease.roleId} in (select id from access_role where plugin_slug = ${plugin.slug})`;
  const theirs = and(eq(accessLease.userName, actor.user), isNull(accessLease.finishedAt), byPlugin);
  if ((await tx.$count(accessLease, theirs)) >= most)
    throw new Conflict(`You already have ${most} leases: revoke some with svc access revoke`);
  const [lease] = await tx
    .insert(accessLease)
    .values({
      roleId: role.id,
      requestId: request?.id ?? null,
      userName: actor.user,
      tokenId: tokenOf(actor),
      ...incident,
      idempotencyKey,
      name: nameFor(actor.user),
      createdAt: at,
      maxExpiresAt: isRenewed && wanted.duration !== undefined ? asked : limit,
      expiresAt: isRenewed ? earlier(after(at, renewedSeconds), asked) : asked,
      dueAt: after(at, config.pluginTimeout + marginSeconds),
    })
    .returning();
  // A user who left the incident and can still read it has the basis for a lease of their own, but not for this request.
  const ended =
    (request && (await endReasonOfRequest(tx, request.id, config.adminGroup))) ??
    (await endReasonOfLease(tx, lease!.id, config.adminGroup));
  if (ended) throw new Conflict(`${role.slug} cannot be used: ${endReasons[ended]}`);
  return { lease: lease!, role, plugin, isRenewed };
}

/** Makes a unique, readable name for a credential at its target. */
function nameFor(user: string): string {
  const who = user
    .split("@", 1)[0]!
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "_")
    .slice(0, 24);
  return `svc_${who}_${newSecret()
    .toLowerCase()
    .replace(/[^a-z0-9]/g, "")
    .slice(0, 16)}`;
}

/** @throws NotFound @throws Conflict */
async function approvedRequest(tx: Transaction, actor: Actor, role: RoleRow, id: number, at: Date) {
  const [request] = await tx
    .select()
    .from(accessRequest)
    .where(and(eq(accessRequest.id, id), eq(accessRequest.userName, actor.user)));
  if (!request || request.roleId !== role.id)
    throw new NotFound(`You have no request ${id} for ${role.slug}: svc access requests lists your requests`);
  if (request.state !== "Approved") throw new Conflict(`Your request ${id} is ${request.state}`);
  if (request.expiresAt <= at) throw new Conflict("The approved access has expired: request it again");
  return request;
}
