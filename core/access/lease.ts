import { and, eq, gt, inArray, isNull, lte, or, type SQL, sql } from "drizzle-orm";
import type { Database, Transaction } from "../../drizzle/client.ts";
import { accessLease, accessRequest, accessRole } from "../../drizzle/schema/index.ts";
import { after } from "../../platform/clock.ts";
import { Conflict, Forbidden, InvalidInput, NotFound, Refused, Unavailable } from "../../platform/errors.ts";
import { newSecret } from "../../platform/secret.ts";
import type { Actor, Context } from "../context.ts";
import { type List, type ListQuery, startPage } from "../list/page.ts";
import {
  attemptWork,
  type Claim,
  failWork,
  finishWork,
  giveBackWork,
  LeaseLost,
  type WorkKind,
} from "../outbox/work.ts";
import { callPlugin } from "../plugin/call.ts";
import type { PluginContext } from "../plugin/context.ts";
import type { MethodAnswer } from "../plugin/methods.ts";
import { inWords, recordAccess } from "./record.ts";
import { databaseNow, durationOf, type EndReason, endedBasis, endReasons, incidentFor } from "./request.ts";
import { factsOf, pluginOf, type RoleRow, requestableRole } from "./role.ts";

// A lease is one credential that was issued. Its life:
//
// 1. Issuing is committed, with the name that the credential will have, before the plugin is asked. Whatever happens from
//    then on, the lease ends with a revocation by that name.
// 2. Active when the plugin has answered. The secret goes to who asked and is kept nowhere.
// 3. Revoking when it has expired, when what it rests on is gone (`endedBasis`), when somebody revokes it, or when nobody
//    has said in time that it was issued. A worker finds all of these by one query (`endLeases`), so there is no change
//    anywhere that could forget to tell of it.
// 4. Revoked, or Failed if it never was Active. Until then it is tried again, without an end.

/** Of one user, not over. */
const mostLeases = 100;
/** Beyond what a plugin may take: afterwards a lease that is still Issuing belongs to a process that died. */
const marginSeconds = 30;
const batch = 200;

export type LeaseRow = typeof accessLease.$inferSelect;
export type LeaseState = LeaseRow["state"];
/** With the slug of its role. */
export type Lease = LeaseRow & { role: string };
export type Credential = Pick<MethodAnswer<"credential", "issue">, "kind" | "fields">;

export type LeaseClaim = LeaseRow & Claim;

/** Revocations as a kind of durable work. */
export const revocations: WorkKind<LeaseClaim> = {
  table: accessLease,
  isRow: ({ id }) => eq(accessLease.id, id),
  states: { waiting: "Revoking", running: "Revoking", failed: "Revoking", done: "Revoked" },
  // As long as the credential may be good, and soon after its target is back.
  backoff: { firstSeconds: 2, longestSeconds: 60, mostAttempts: Number.POSITIVE_INFINITY },
};

export interface NewLease {
  role: string;
  /** An approved request of the actor's; without one, for a role that needs no approval. */
  requestId?: number;
  incident?: string;
  duration?: number;
  /** Of the client, for kinds that certify one. */
  publicKey?: string;
  idempotencyKey?: string;
}

/**
 * Issues a credential. Nothing is kept of its secret: somebody who has not received the answer asks again under the same
 * idempotency key, which ends the first lease.
 *
 * @throws NotFound for a role that the actor may not request
 * @throws Conflict when it needs an approval that there is not, or has ended
 * @throws InvalidInput also when its plugin refuses the public key or the duration
 * @throws Unavailable when its plugin fails
 */
export async function issueLease(
  context: PluginContext,
  actor: Actor,
  wanted: NewLease,
): Promise<{ lease: Lease; credential: Credential }> {
  const { lease, role } = await context.db.transaction((tx) => beginLease(tx, context, actor, wanted));
  const plugin = pluginOf(context, role.pluginSlug);
  const { facts, secrets } = factsOf(context, role);
  const { id: leaseId, name, expiresAt, createdAt } = lease;
  const seconds = Math.round((expiresAt.getTime() - createdAt.getTime()) / 1000);
  const outcome = await callPlugin(
    { ...plugin, secrets: [...plugin.secrets, ...secrets] },
    "issue",
    {
      ...{ leaseId, name, role: facts, user: actor.user, expiresAt: expiresAt.toISOString(), seconds },
      ...(wanted.publicKey === undefined ? {} : { publicKey: wanted.publicKey }),
      ...(lease.incidentName === null ? {} : { incident: lease.incidentName }),
    },
    { key: name },
  );
  if (!outcome.ok) {
    const { reason, detail, frames } = outcome;
    context.log.warn({ plugin: plugin.slug, lease: leaseId, reason, frames }, `a plugin failed: ${detail}`);
    // Of one that was not waited for, something may still come to be.
    const endReason = reason === "timeout" || reason === "aborted" ? "interrupted" : "not_issued";
    await endOne(context, leaseId, { endReason, error: detail });
    const { field } = outcome;
    if (field === "public_key" || field === "duration") throw new InvalidInput(field, detail);
    throw new Unavailable(`${role.slug}: ${detail}`);
  }
  const { kind, fields, handle, expiresAt: ends } = outcome.value;
  const end = ends !== undefined && new Date(ends) < expiresAt ? new Date(ends) : expiresAt;
  const active = await context.db.transaction(async (tx) => {
    const issuedAt = await databaseNow(tx);
    const [row] = await tx
      .update(accessLease)
      .set({ ...{ state: "Active", issuedAt, handle: handle ?? null, expiresAt: end, dueAt: end } })
      .where(and(eq(accessLease.id, leaseId), eq(accessLease.state, "Issuing")))
      .returning();
    if (!row) return undefined;
    await recordAccess(tx, {
      ...changeOf({ ...row, role: role.slug }, actor.user, issuedAt),
      action: "access.issued",
      description: `${actor.user} has ${role.slug} for ${inWords(seconds)}`,
    });
    return { ...row, role: role.slug };
  });
  if (!active) {
    // It took so long that its revocation has begun, perhaps before there was anything to revoke.
    await endOne(context, leaseId, { endReason: "interrupted", error: "It was issued too late" });
    throw new Conflict("The access ended while it was being issued: try again");
  }
  return { lease: active, credential: { kind, fields } };
}

async function beginLease(
  tx: Transaction,
  { config }: Pick<Context, "config">,
  actor: Actor,
  wanted: NewLease,
): Promise<{ lease: LeaseRow; role: RoleRow }> {
  const role = await requestableRole(tx, actor, wanted.role);
  const at = await databaseNow(tx);
  const request =
    wanted.requestId === undefined ? undefined : await usable(tx, actor, role, wanted.requestId, at);
  if (!request && role.approval !== "none")
    throw new Conflict(`${role.slug} needs approval: svc access request ${role.slug} --reason ...`);
  const name = request ? (request.incidentName ?? undefined) : wanted.incident;
  const incident = await incidentFor(tx, actor, role, name);
  const seconds = durationOf(role, wanted.duration ?? request?.duration);
  const maxExpiresAt = request?.expiresAt ?? after(at, role.maxDuration);
  const asked = after(at, seconds);
  const { idempotencyKey = null } = wanted;
  if (idempotencyKey !== null)
    await markEnding(
      tx,
      actor.user,
      "asked_again",
      and(eq(accessLease.userName, actor.user), eq(accessLease.idempotencyKey, idempotencyKey)),
    );
  const theirs = and(eq(accessLease.userName, actor.user), isNull(accessLease.finishedAt));
  if ((await tx.$count(accessLease, theirs)) >= mostLeases)
    throw new Conflict(`You have ${mostLeases} leases: end some with svc access revoke`);
  const [lease] = await tx
    .insert(accessLease)
    .values({
      ...{ roleId: role.id, requestId: request?.id ?? null, userName: actor.user, tokenId: actor.tokenId },
      ...{ ...incident, idempotencyKey, name: nameFor(actor.user) },
      ...{ createdAt: at, maxExpiresAt },
      expiresAt: asked < maxExpiresAt ? asked : maxExpiresAt,
      dueAt: after(at, config.pluginTimeout + marginSeconds),
    })
    .returning();
  const ended = await endedNow(tx, lease!.id);
  if (ended) throw new Conflict(`There is no access to ${role.slug}: ${endReasons[ended]}`);
  return { lease: lease!, role };
}

/** What a credential is called at its target: who has it, and something that no other one has. */
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
async function usable(tx: Transaction, actor: Actor, role: RoleRow, id: number, at: Date) {
  const [request] = await tx
    .select()
    .from(accessRequest)
    .where(and(eq(accessRequest.id, id), eq(accessRequest.userName, actor.user)));
  if (!request || request.roleId !== role.id) throw new NotFound(`You have no such request for ${role.slug}`);
  if (request.state !== "Approved") throw new Conflict(`Your request is ${request.state}`);
  if (request.expiresAt <= at) throw new Conflict("What was approved is over: ask again");
  return request;
}

const changeOf = (lease: Lease, actor: string, at: Date) => ({
  ...{ at, actor, incidentId: lease.incidentId, subject: `lease/${lease.id}` },
  data: { lease_id: lease.id, role: lease.role, name: lease.name },
});

/** Of a lease: also that the token ended with which it was asked for. */
const endedLease = sql<EndReason | null>`coalesce(${endedBasis(accessLease)}, (
  select 'signed_out' from token where jti = ${accessLease.tokenId} and revoked_at is not null))`;

async function endedNow(tx: Transaction, id: number): Promise<EndReason | null> {
  // In a WHERE, drizzle leaves columns the name of their table.
  const rows = await tx.execute<{ ended: EndReason | null }>(
    sql`select ${endedLease} as ended from ${accessLease} where ${accessLease.id} = ${id}`,
  );
  return rows[0]?.ended ?? null;
}

/**
 * Marks every lease that has to end as Revoking, and says why: of what has expired, of what rests on nothing any more, and
 * of what was never said to be issued.
 *
 * @returns how many, of which there may be more
 */
export async function endLeases({ db }: Pick<Context, "db">): Promise<number> {
  return db.transaction(async (tx) => {
    const why = sql`case when ${accessLease.dueAt} <= clock_timestamp() then
      case ${accessLease.state} when 'Active' then 'expired' else 'interrupted' end else ${endedLease} end`;
    return await markEnding(tx, "system", why, undefined);
  });
}

/** Marks leases as Revoking, for a reason that is not null. @returns how many */
async function markEnding(
  tx: Transaction,
  actor: string,
  reason: string | SQL,
  among: SQL | undefined,
): Promise<number> {
  const at = await databaseNow(tx);
  const alive = inArray(accessLease.state, ["Issuing", "Active"]);
  const found = await tx.execute<{ id: string; reason: string }>(sql`
    select id, reason from (
      select ${accessLease.id} as id, ${typeof reason === "string" ? sql`${reason}::text` : reason} as reason
      from ${accessLease} where ${and(alive, among)}) as ending
    where reason is not null order by id limit ${batch}`);
  const reasons = new Map([...found].map((row) => [Number(row.id), row.reason]));
  if (reasons.size === 0) return 0;
  const rows = await tx
    .update(accessLease)
    .set({
      ...{ state: "Revoking", dueAt: at },
      endReason: sql`(${JSON.stringify(Object.fromEntries(reasons))}::jsonb) ->> ${accessLease.id}::text`,
    })
    .from(accessRole)
    .where(and(eq(accessRole.id, accessLease.roleId), inArray(accessLease.id, [...reasons.keys()]), alive))
    .returning({ lease: accessLease, role: accessRole.slug });
  for (const { lease, role } of rows) {
    const { endReason, userName } = lease;
    const because = endReasons[endReason as EndReason];
    await recordAccess(tx, {
      ...changeOf({ ...lease, role }, actor, at),
      action: "access.ending",
      description: `The access of ${userName} to ${role} ends${because ? `: ${because}` : ""}`,
    });
  }
  return rows.length;
}

/** Has a lease that was not issued as it should be revoked, also one that is over already: something may be there since. */
async function endOne(
  { db }: Pick<Context, "db">,
  id: number,
  { endReason, error }: { endReason: string; error: string },
): Promise<void> {
  await db
    .update(accessLease)
    .set({ state: "Revoking", dueAt: sql`clock_timestamp()`, finishedAt: null, endReason, error })
    .where(eq(accessLease.id, id));
}

const leases: List<"created_at"> = {
  name: "access_leases",
  id: accessLease.id,
  sorts: { created_at: { by: accessLease.createdAt, kind: "instant" } },
  defaultSort: "-created_at",
};

const maySee = ({ admin, user }: Actor): SQL => (admin ? sql`true` : eq(accessLease.userName, user));
const shown = { lease: accessLease, role: accessRole.slug };

export interface LeaseFilters {
  state?: LeaseState;
  user?: string;
  role?: string;
  incident?: string;
}

const matching = ({ state, user, role, incident }: LeaseFilters): SQL | undefined =>
  and(
    state && eq(accessLease.state, state),
    user === undefined ? undefined : eq(accessLease.userName, user),
    role === undefined
      ? undefined
      : sql`${accessLease.roleId} = (select id from access_role where slug = ${role})`,
    incident === undefined ? undefined : eq(accessLease.incidentName, incident),
  );

/** One page of the actor's leases, for admins of all, the newest first. @throws InvalidInput */
export async function listLeases(
  { db }: Pick<Context, "db">,
  actor: Actor,
  { state, user, role, incident, ...query }: ListQuery & LeaseFilters,
): Promise<{ items: Lease[]; next_cursor: string | null }> {
  const filters = { state, user, role, incident };
  const page = startPage(leases, query, filters);
  const rows = await db
    .select({ ...shown, key: page.key })
    .from(accessLease)
    .innerJoin(accessRole, eq(accessRole.id, accessLease.roleId))
    .where(page.within(and(maySee(actor), matching(filters))))
    .orderBy(...page.orderBy)
    .limit(page.limit);
  return page.finish(rows.map(({ lease, role: slug, key }) => ({ item: { ...lease, role: slug }, key })));
}

/** @throws NotFound also for somebody else's */
export async function getLease({ db }: Pick<Context, "db">, actor: Actor, id: number): Promise<Lease> {
  const [found] = await db
    .select(shown)
    .from(accessLease)
    .innerJoin(accessRole, eq(accessRole.id, accessLease.roleId))
    .where(and(eq(accessLease.id, id), maySee(actor)));
  if (!found) throw new NotFound("There is no such lease");
  return { ...found.lease, role: found.role };
}

/**
 * Ends a lease; one that ends already stays as it is. The revocation itself is a worker's.
 *
 * @throws NotFound also for somebody else's, but for admins
 */
export async function revokeLease({ db }: Context, actor: Actor, id: number): Promise<Lease> {
  return db.transaction(async (tx) => {
    await getLease({ db: tx }, actor, id);
    await markEnding(tx, actor.user, "revoked", eq(accessLease.id, id));
    return await getLease({ db: tx }, actor, id);
  });
}

/** Ends all leases that match. @returns how many @throws Forbidden for anybody else's, but for admins */
export async function revokeLeases({ db }: Context, actor: Actor, filters: LeaseFilters): Promise<number> {
  if (Object.values(filters).every((value) => value === undefined))
    throw new InvalidInput("query", "Say which: by user, role or incident");
  if (filters.user !== undefined && filters.user !== actor.user && !actor.admin)
    throw new Forbidden("Only an admin ends the access of others");
  let total = 0;
  for (;;) {
    const ended = await db.transaction((tx) =>
      markEnding(tx, actor.user, "revoked", and(maySee(actor), matching(filters))),
    );
    total += ended;
    if (ended < batch) return total;
  }
}

/**
 * Makes a lease last longer, up to the end that its role and its request set.
 *
 * @throws NotFound also for somebody else's
 * @throws Conflict when it is not Active, is being renewed, or cannot be
 * @throws Unavailable when its plugin fails
 */
export async function renewLease(
  context: PluginContext,
  actor: Actor,
  { id, duration }: { id: number; duration?: number },
): Promise<Lease> {
  const { db, config } = context;
  const own = and(eq(accessLease.id, id), eq(accessLease.userName, actor.user));
  const claimed = await db.transaction(async (tx) => {
    const at = await databaseNow(tx);
    const lease = await getLease({ db: tx }, { ...actor, admin: false }, id);
    const [role] = await tx.select().from(accessRole).where(eq(accessRole.id, lease.roleId));
    const plugin = pluginOf(context, role!.pluginSlug);
    if (plugin.methods.renew === undefined) throw new Conflict(`A lease of ${role!.slug} cannot be renewed`);
    const asked = after(at, durationOf(role!, duration));
    const expiresAt = asked < lease.maxExpiresAt ? asked : lease.maxExpiresAt;
    if (expiresAt <= lease.expiresAt)
      throw new Conflict(
        `It lasts until ${lease.expiresAt.toISOString()}, and no longer: ask for new access`,
      );
    const ended = await endedNow(tx, id);
    if (ended) throw new Conflict(`There is no access to ${role!.slug} any more: ${endReasons[ended]}`);
    // So that its revocation waits for what the plugin does now.
    const leaseUntil = after(at, config.pluginTimeout + marginSeconds);
    const [ours] = await tx
      .update(accessLease)
      .set({ leaseUntil })
      .where(
        and(
          ...[own, eq(accessLease.state, "Active"), gt(accessLease.expiresAt, at)],
          or(isNull(accessLease.leaseUntil), lte(accessLease.leaseUntil, at)),
        ),
      )
      .returning();
    if (!ours)
      throw new Conflict(lease.state === "Active" ? "It is being renewed" : `It is ${lease.state} already`);
    return { lease: ours, role: role!, plugin, at, expiresAt };
  });
  const { lease, role, plugin, at, expiresAt } = claimed;
  const { facts, secrets } = factsOf(context, role);
  const seconds = Math.round((expiresAt.getTime() - at.getTime()) / 1000);
  const { name, handle } = lease;
  const outcome = await callPlugin({ ...plugin, secrets: [...plugin.secrets, ...secrets] }, "renew", {
    ...{ leaseId: id, name, role: facts, expiresAt: expiresAt.toISOString(), seconds },
    ...(handle === null ? {} : { handle }),
  });
  const still = and(own, eq(accessLease.leaseUntil, lease.leaseUntil!));
  return db
    .transaction(async (tx) => {
      const ends = outcome.ok && outcome.value.expiresAt ? new Date(outcome.value.expiresAt) : expiresAt;
      const [renewed] = outcome.ok
        ? await tx
            .update(accessLease)
            .set({ expiresAt: ends, dueAt: ends, leaseUntil: null })
            .where(and(still, eq(accessLease.state, "Active")))
            .returning()
        : [];
      if (!renewed) await tx.update(accessLease).set({ leaseUntil: null }).where(still);
      else
        await recordAccess(tx, {
          ...changeOf({ ...renewed, role: role.slug }, actor.user, at),
          action: "access.renewed",
          description: `${actor.user} renewed ${role.slug} for ${inWords(seconds)}`,
        });
      return renewed;
    })
    .then((renewed) => {
      if (!outcome.ok) throw new Unavailable(`${role.slug}: ${outcome.detail}`);
      if (!renewed) throw new Conflict("The access ended while it was being renewed");
      return { ...renewed, role: role.slug };
    });
}

type RevocationContext = Omit<PluginContext, "db"> & { db: Database };

/**
 * Revokes a claimed lease at its target, and notes what came of it.
 *
 * @returns `waiting`: it is gone, and is looked for again when nothing of it can come any more
 */
export async function attemptRevocation(
  context: RevocationContext,
  claim: LeaseClaim,
  signal?: AbortSignal,
): Promise<"done" | "waiting" | "again" | "given back" | "stale"> {
  const { db, clock, log, config } = context;
  const [role] = await db.select().from(accessRole).where(eq(accessRole.id, claim.roleId));
  return await attemptWork<void, "done" | "waiting" | "again" | "given back">(
    claim,
    signal,
    () => revokeAtTarget(context, claim, role!, signal),
    {
      finish: async () => {
        const at = clock.now();
        // A call of which nobody has heard the end may still create it.
        const quiet = after(claim.createdAt, 2 * (config.pluginTimeout + marginSeconds));
        if (claim.endReason === "interrupted" && at < quiet) {
          const seconds = (quiet.getTime() - at.getTime()) / 1000;
          await giveBackWork(db, revocations, claim, at, seconds);
          return "waiting";
        }
        await db.transaction(async (tx) => {
          const failed = claim.issuedAt === null;
          await finishWork(tx, revocations, claim, at, failed ? "Failed" : "Revoked");
          const lease = { ...claim, role: role!.slug };
          await recordAccess(tx, {
            ...changeOf(lease, "system", at),
            action: failed ? "access.failed" : "access.revoked",
            description: failed
              ? `${claim.userName} did not get ${role!.slug}`
              : `${claim.userName} has ${role!.slug} no longer`,
          });
        });
        return "done";
      },
      fail: async (failure) => {
        await failWork(db, revocations, claim, clock.now(), { ...failure, permanent: false });
        const facts = { lease: claim.id, role: role!.slug, attempts: claim.attempts };
        if (claim.attempts > 1) log.error(facts, `a lease cannot be revoked: ${failure.reason}`);
        return "again";
      },
      giveBack: async (seconds) => {
        await giveBackWork(db, revocations, claim, clock.now(), seconds);
        return "given back";
      },
      onFault: (err) => log.error({ err, lease: claim.id }, "a revocation failed by a fault of ours"),
      endless: true,
    },
  ).catch((error: unknown) => {
    if (error instanceof LeaseLost) return "stale";
    throw error;
  });
}

/** @throws Unavailable */
async function revokeAtTarget(
  context: RevocationContext,
  { id: leaseId, name, handle }: LeaseClaim,
  role: RoleRow,
  signal?: AbortSignal,
): Promise<void> {
  const plugin = context.plugins.find("credential", role.pluginSlug);
  if (!plugin) throw new Unavailable(`The plugin ${role.pluginSlug} is not enabled (SVC_PLUGIN_CREDENTIAL)`);
  const { facts, secrets } = factsOf(context, role);
  const outcome = await callPlugin(
    { ...plugin, secrets: [...plugin.secrets, ...secrets] },
    "revoke",
    { leaseId, name, role: facts, ...(handle === null ? {} : { handle }) },
    { signal, key: name },
  );
  if (outcome.ok) return;
  const { detail, frames, reason } = outcome;
  if (reason !== "aborted")
    context.log.warn({ plugin: plugin.slug, lease: leaseId, reason, frames }, `a plugin failed: ${detail}`);
  throw outcome.permanent ? new Refused(detail) : new Unavailable(detail);
}
