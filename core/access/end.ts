import { and, eq, gt, inArray, isNull, type SQL, sql } from "drizzle-orm";
import type { Database, Transaction } from "../../drizzle/client.ts";
import { accessLease, accessRole } from "../../drizzle/schema/index.ts";
import { Forbidden, InvalidInput } from "../../platform/errors.ts";
import type { Actor, Context } from "../context.ts";
import { databaseNow } from "../database_clock.ts";
import { lockIncidents } from "../incident/incident/lock.ts";
import type { AppContext } from "../plugin/context.ts";
import { wakeWorkers } from "../wake.ts";
import { type EndReason, endedLease, endReasons } from "./basis.ts";
import { changeOf, getLease, type Lease, type LeaseFilters, matching, maySee } from "./lease.ts";
import { recordAccess } from "./record.ts";

// Ending a lease only marks it as Revoking. A worker then revokes it at the target (revoke.ts).

const batch = 200;

/**
 * Marks leases as Revoking: those that expired, lost their basis, or stayed Issuing for too long. Leases that are locked, or
 * whose incident is, are left for the next call: one transaction that stays open must not delay all others.
 */
export async function endLeases(
  { db, config }: Pick<Context, "config"> & { db: Database },
  stop: AbortSignal,
): Promise<void> {
  const why = sql`case when ${accessLease.dueAt} <= clock_timestamp() then
    case ${accessLease.state} when 'Active' then 'expired' else 'interrupted' end else ${endedLease(config.adminGroup)} end`;
  const mark = (after: number) =>
    db.transaction((tx) => markEnding(tx, "system", why, undefined, { after, skipLocked: true }));
  for (let last: number | null = 0; last !== null && !stop.aborted;) ({ last } = await mark(last));
}

interface Ending {
  expiresAt: Date;
  pluginSlug: string;
}

/**
 * Marks the leases whose `reason` is not null as Revoking, up to one batch. It passes over those that are locked, with
 * `skipLocked`, and those that another transaction ends first.
 *
 * @param options.after the `last` of the batch before
 * @returns `last`: the last lease of a full batch, after which there may be more
 */
export async function markEnding(
  tx: Transaction,
  actor: string,
  reason: string | SQL,
  among: SQL | undefined,
  { after = 0, skipLocked = false } = {},
): Promise<{ ended: Ending[]; last: number | null }> {
  const at = await databaseNow(tx);
  // Unfinished, which its state implies, so that PostgreSQL uses the index of those: the others are kept for ever.
  const alive = and(inArray(accessLease.state, ["Issuing", "Active"]), isNull(accessLease.finishedAt));
  const found = await tx.execute<{ id: string; incident_id: string | null; reason: string }>(sql`
    select id, incident_id, reason from (
      select ${accessLease.id} as id, ${accessLease.incidentId} as incident_id, ${typeof reason === "string" ? sql`${reason}::text` : reason} as reason
      from ${accessLease} where ${and(alive, gt(accessLease.id, after), among)}) as ending
    where reason is not null order by id limit ${batch}
    ${skipLocked ? sql`for no key update skip locked` : sql``}`);
  const ending = [...found].map((row) => ({
    ...row,
    incidentId: row.incident_id === null ? null : Number(row.incident_id),
  }));
  const locked = await lockIncidents(
    tx,
    ending.map(({ incidentId }) => incidentId),
    { skipLocked },
  );
  const free = ending.filter(({ incidentId: id }) => !skipLocked || id === null || locked.has(id));
  const reasons = new Map(free.map(({ id, reason }) => [Number(id), reason]));
  const last = ending.length === batch ? Number(ending.at(-1)!.id) : null;
  if (reasons.size === 0) return { ended: [], last };
  const rows = await tx
    .update(accessLease)
    .set({
      state: "Revoking",
      dueAt: at,
      endReason: sql`(${JSON.stringify(Object.fromEntries(reasons))}::jsonb) ->> ${accessLease.id}::text`,
    })
    .from(accessRole)
    .where(and(eq(accessRole.id, accessLease.roleId), inArray(accessLease.id, [...reasons.keys()]), alive))
    .returning({ lease: accessLease, role: accessRole.slug, pluginSlug: accessRole.pluginSlug });
  for (const { lease, role } of rows) {
    const { endReason, userName } = lease;
    const because = endReasons[endReason as EndReason];
    await recordAccess(tx, {
      ...changeOf({ ...lease, role }, actor, at),
      action: "access.ending",
      description: `${userName}'s access to ${role} ends${because ? `: ${because}` : ""}`,
    });
  }
  return { ended: rows.map(({ lease: { expiresAt }, pluginSlug }) => ({ expiresAt, pluginSlug })), last };
}

/** Revokes a lease that could not be issued, even if it is Revoked already: the credential may have appeared since. */
export async function revokeUnissued(
  { db }: Pick<Context, "db">,
  id: number,
  { endReason, error }: { endReason: string; error: string },
): Promise<void> {
  await db
    .update(accessLease)
    .set({ state: "Revoking", dueAt: sql`clock_timestamp()`, finishedAt: null, endReason, error })
    .where(eq(accessLease.id, id));
  wakeWorkers(db);
}

/**
 * Ends a lease. If it is ending already, retries its revocation now. A lease that has ended stays unchanged.
 *
 * @throws NotFound also for another user's lease, except for admins
 */
export async function revokeLease({ db }: Context, actor: Actor, id: number): Promise<Lease> {
  return db.transaction(async (tx) => {
    await markEnding(tx, actor.user, "revoked", eq(accessLease.id, id));
    const waits = and(eq(accessLease.state, "Revoking"), isNull(accessLease.leaseUntil));
    await tx
      .update(accessLease)
      .set({ dueAt: sql`least(${accessLease.dueAt}, clock_timestamp())` })
      .where(and(eq(accessLease.id, id), waits));
    wakeWorkers(tx);
    // An error here rolls the change back.
    return await getLease({ db: tx }, actor, id);
  });
}

/**
 * Ends all matching leases.
 *
 * @returns how many, and until when targets may still accept those credentials that only expire
 * @throws InvalidInput without a filter
 * @throws Forbidden for another user's leases, except for admins
 */
export async function revokeLeases(
  { db, plugins }: Pick<AppContext, "db" | "plugins">,
  actor: Actor,
  filters: LeaseFilters,
): Promise<{ ended: number; acceptedUntil: Date | null }> {
  if (Object.values(filters).every((value) => value === undefined))
    throw new InvalidInput("query", "Specify a user, a role or an incident");
  if (filters.user !== undefined && filters.user !== actor.user && !actor.admin)
    throw new Forbidden("Only admins can revoke other users' access");
  const among = and(maySee(actor), matching(filters));
  const mark = (after: number) =>
    db.transaction((tx) => markEnding(tx, actor.user, "revoked", among, { after }));
  let count = 0;
  let acceptedUntil: Date | null = null;
  for (let last: number | null = 0; last !== null;) {
    const marked = await mark(last);
    for (const { pluginSlug, expiresAt } of marked.ended)
      if (plugins.find("credential", pluginSlug)?.revocable === "expiry")
        if (acceptedUntil === null || expiresAt > acceptedUntil) acceptedUntil = expiresAt;
    count += marked.ended.length;
    last = marked.last;
  }
  return { ended: count, acceptedUntil };
}
