import { and, eq, inArray, type SQL, sql } from "drizzle-orm";
import type { Transaction } from "../../drizzle/client.ts";
import { accessLease, accessRole } from "../../drizzle/schema/index.ts";
import { Forbidden, InvalidInput } from "../../platform/errors.ts";
import type { Actor, Context } from "../context.ts";
import { databaseNow } from "../database_clock.ts";
import { lockIncidents } from "../incident/incident/lock.ts";
import type { PluginContext } from "../plugin/context.ts";
import { type EndReason, endedLease, endReasons } from "./basis.ts";
import { changeOf, getLease, type Lease, type LeaseFilters, matching, maySee } from "./lease.ts";
import { recordAccess } from "./record.ts";

// Ending a lease only marks it as Revoking. A worker then revokes it at the target (revoke.ts).

const batch = 200;

/**
 * Marks a batch of leases as Revoking: those that expired, lost their basis, or stayed Issuing for too long. Leases that are
 * locked, or whose incident is, are left for the next call: one transaction that stays open must not delay all others.
 *
 * @returns how many; call again until it returns 0
 */
export async function endLeases({ db, config }: Pick<Context, "db" | "config">): Promise<number> {
  return db.transaction(async (tx) => {
    const why = sql`case when ${accessLease.dueAt} <= clock_timestamp() then
      case ${accessLease.state} when 'Active' then 'expired' else 'interrupted' end else ${endedLease(config.adminGroup)} end`;
    return (await markEnding(tx, "system", why, undefined, { skipLocked: true })).length;
  });
}

interface Ending {
  expiresAt: Date;
  pluginSlug: string;
}

/** Marks the leases whose `reason` is not null as Revoking, up to one batch. */
export async function markEnding(
  tx: Transaction,
  actor: string,
  reason: string | SQL,
  among: SQL | undefined,
  { skipLocked = false } = {},
): Promise<Ending[]> {
  const at = await databaseNow(tx);
  const alive = inArray(accessLease.state, ["Issuing", "Active"]);
  const found = await tx.execute<{ id: string; incident_id: string | null; reason: string }>(sql`
    select id, incident_id, reason from (
      select ${accessLease.id} as id, ${accessLease.incidentId} as incident_id, ${typeof reason === "string" ? sql`${reason}::text` : reason} as reason
      from ${accessLease} where ${and(alive, among)}) as ending
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
  if (reasons.size === 0) return [];
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
  return rows.map(({ lease: { expiresAt }, pluginSlug }) => ({ expiresAt, pluginSlug }));
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
}

/**
 * Ends a lease. A lease that is ending or has ended stays unchanged.
 *
 * @throws NotFound also for another user's lease, except for admins
 */
export async function revokeLease({ db }: Context, actor: Actor, id: number): Promise<Lease> {
  return db.transaction(async (tx) => {
    await markEnding(tx, actor.user, "revoked", eq(accessLease.id, id));
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
  { db, plugins }: Pick<PluginContext, "db" | "plugins">,
  actor: Actor,
  filters: LeaseFilters,
): Promise<{ ended: number; acceptedUntil: Date | null }> {
  if (Object.values(filters).every((value) => value === undefined))
    throw new InvalidInput("query", "Specify a user, a role or an incident");
  if (filters.user !== undefined && filters.user !== actor.user && !actor.admin)
    throw new Forbidden("Only admins can revoke other users' access");
  let ended = 0;
  let acceptedUntil: Date | null = null;
  for (;;) {
    const some = await db.transaction((tx) =>
      markEnding(tx, actor.user, "revoked", and(maySee(actor), matching(filters))),
    );
    for (const { pluginSlug, expiresAt } of some)
      if (plugins.find("credential", pluginSlug)?.revocable === "expiry")
        if (acceptedUntil === null || expiresAt > acceptedUntil) acceptedUntil = expiresAt;
    ended += some.length;
    if (some.length < batch) return { ended, acceptedUntil };
  }
}
