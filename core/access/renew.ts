import { and, eq, gt, isNull, lte, or } from "drizzle-orm";
import { accessLease, accessRole } from "../../drizzle/schema/index.ts";
import { after } from "../../platform/clock.ts";
import { Conflict, InProgress, Unavailable } from "../../platform/errors.ts";
import { audit } from "../audit.ts";
import type { Actor } from "../context.ts";
import { databaseNow } from "../database_clock.ts";
import type { AppContext } from "../plugin/context.ts";
import { endReasonOfLease, endReasons } from "./basis.ts";
import { changeOf, earlier, earlierEnd, getLease, type Lease, marginSeconds } from "./lease.ts";
import { durationOf } from "./request.ts";
import { callForRole, pluginOf } from "./role_plugin.ts";

/** When a client should retry if the lease is already being renewed. */
const retrySeconds = 5;

/**
 * Extends a lease, up to the limit of its role and its request. One that already lasts longer stays unchanged. The audit log
 * records it, but not the timeline: `svc access run` renews a lease every few minutes.
 *
 * @throws NotFound also for another user's lease
 * @throws Conflict when it is not Active or cannot be renewed
 * @throws InProgress while another call renews it
 * @throws Unavailable when the plugin fails
 */
export async function renewAccess(
  context: AppContext,
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
    if (plugin.methods.renew === undefined) throw new Conflict(`Leases of ${role!.slug} cannot be renewed`);
    const asked = after(at, durationOf(role!, duration));
    const expiresAt = earlier(asked, lease.maxExpiresAt);
    if (lease.state === "Active" && expiresAt <= lease.expiresAt && lease.expiresAt < lease.maxExpiresAt)
      return { unchanged: lease };
    if (expiresAt <= lease.expiresAt)
      throw new Conflict(
        `The lease ends at ${lease.expiresAt.toISOString()} and cannot be extended: request new access`,
      );
    const ended = await endReasonOfLease(tx, id, config.adminGroup);
    if (ended) throw new Conflict(`${role!.slug} can no longer be used: ${endReasons[ended]}`);
    // A revocation waits until this claim ends, so it runs after the plugin's renewal.
    const leaseUntil = after(at, config.pluginTimeout + marginSeconds);
    const [ours] = await tx
      .update(accessLease)
      .set({ leaseUntil })
      .where(
        and(
          own,
          eq(accessLease.state, "Active"),
          gt(accessLease.expiresAt, at),
          or(isNull(accessLease.leaseUntil), lte(accessLease.leaseUntil, at)),
        ),
      )
      .returning();
    // A client that timed out while its first renewal is still running also gets here, and retries.
    if (!ours && lease.state === "Active") throw new InProgress(retrySeconds);
    if (!ours) throw new Conflict(`The lease is ${lease.state}`);
    return { lease: ours, role: role!, plugin, at, expiresAt };
  });
  if (claimed.unchanged) return claimed.unchanged;
  const { lease, role, plugin, at, expiresAt } = claimed;
  const seconds = Math.round((expiresAt.getTime() - at.getTime()) / 1000);
  const { name, handle } = lease;
  const outcome = await callForRole(context, { role, plugin }, "renew", {
    leaseId: id,
    name,
    expiresAt: expiresAt.toISOString(),
    seconds,
    ...(handle === null ? {} : { handle }),
  });
  const still = and(own, eq(accessLease.leaseUntil, lease.leaseUntil!));
  const release = () => db.update(accessLease).set({ leaseUntil: null }).where(still);
  if (!outcome.ok) {
    await release();
    throw new Unavailable(`${role.slug}: ${outcome.detail}`);
  }
  const end = earlierEnd(outcome.value, expiresAt);
  const renewed = await db.transaction(async (tx) => {
    const [row] = await tx
      .update(accessLease)
      .set({ expiresAt: end, dueAt: end, leaseUntil: null })
      .where(and(still, eq(accessLease.state, "Active")))
      .returning();
    if (!row) return undefined;
    const { incidentId: _, ...change } = changeOf({ ...row, role: role.slug }, actor.user, at);
    await audit(tx, { ...change, action: "access.renewed", data: { ...change.data, seconds } });
    return { ...row, role: role.slug };
  });
  if (renewed) return renewed;
  await release();
  throw new Conflict("The lease ended while it was being renewed");
}
