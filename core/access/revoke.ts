import { eq, sql } from "drizzle-orm";
import { transience } from "../../drizzle/database_error.ts";
import { accessLease, accessRole } from "../../drizzle/schema/index.ts";
import { after } from "../../platform/clock.ts";
import { Unavailable } from "../../platform/errors.ts";
import { lockIncidents } from "../incident/incident/lock.ts";
import {
  attemptWork,
  failWork,
  finishWork,
  LeaseLost,
  postponedSeconds,
  releaseWork,
} from "../outbox/work.ts";
import { workErrorOf } from "../plugin/call.ts";
import { stuckAttempts } from "./count.ts";
import {
  changeOf,
  type LeaseClaim,
  type LeaseContext,
  marginSeconds,
  revocations,
  undecidedRevocations,
} from "./lease.ts";
import { recordAccess } from "./record.ts";
import { callForRole, type RoleRow } from "./role_plugin.ts";

export type LeaseAttempt = "done" | "waiting" | "again" | "given_back" | "stale";

/**
 * Revokes a claimed lease at its target and records the outcome.
 *
 * @returns `waiting` when the target has no such credential, but a call that timed out may still create it; and when the
 * outcome could not be recorded because somebody has locked the incident
 */
export async function attemptRevocation(
  context: LeaseContext,
  claim: LeaseClaim,
  signal?: AbortSignal,
): Promise<LeaseAttempt> {
  const { db, clock, log, config } = context;
  const [role] = await db.select().from(accessRole).where(eq(accessRole.id, claim.roleId));
  return await attemptWork<string[], "done" | "waiting" | "again" | "given_back">(
    claim,
    signal,
    () => revokeAtTarget(context, claim, role!, signal),
    {
      finish: async (left) => {
        const at = clock.now();
        // The call that issues it may still be running. Revoke again once it cannot be.
        const quiet = after(claim.createdAt, 2 * (config.pluginTimeout + marginSeconds));
        if (claim.endReason === "interrupted" && at < quiet) {
          const seconds = (quiet.getTime() - at.getTime()) / 1000;
          await releaseWork(db, revocations, claim, at, seconds);
          return "waiting";
        }
        const recorded = db.transaction(async (tx) => {
          // A locked incident must not occupy the connections that other revocations need.
          if (claim.incidentId !== null) await tx.execute(sql`set local lock_timeout = '2s'`);
          await lockIncidents(tx, [claim.incidentId]);
          const failed = claim.issuedAt === null;
          await finishWork(tx, revocations, claim, at, { state: failed ? "Failed" : "Revoked" });
          const change = changeOf({ ...claim, role: role!.slug }, "system", at);
          const ended = failed ? "did not receive" : "no longer has";
          await recordAccess(tx, {
            ...change,
            action: failed ? "access.failed" : "access.revoked",
            description: `${claim.userName} ${ended} ${role!.slug}${remainder(left)}`,
            ...(left.length > 0 ? { data: { ...change.data, left } } : {}),
          });
        });
        try {
          await recorded;
          return "done";
        } catch (error) {
          if (transience(error) !== "contention") throw error;
          await releaseWork(db, revocations, claim, at, postponedSeconds);
          return "waiting";
        }
      },
      fail: async (failure) => {
        const { permanent = false, reason } = failure;
        const attempts = permanent ? Math.max(claim.attempts, stuckAttempts) : claim.attempts;
        const kind = permanent ? undecidedRevocations : revocations;
        await db.transaction(async (tx) => {
          await failWork(tx, kind, { ...claim, attempts }, clock.now(), { ...failure, permanent: false });
          if (permanent) await tx.update(accessLease).set({ attempts }).where(eq(accessLease.id, claim.id));
        });
        // Once: `svc access leases` and the metric svc_leases_stuck show it from now on.
        if (attempts >= stuckAttempts && claim.attempts <= stuckAttempts)
          log.error({ lease: claim.id, role: role!.slug, attempts }, `cannot revoke a lease: ${reason}`);
        return "again";
      },
      release: async (seconds) => {
        await releaseWork(db, revocations, claim, clock.now(), seconds);
        return "given_back";
      },
      onFault: (err) => log.error({ err, lease: claim.id }, "revocation failed: internal error"),
      untilDone: true,
    },
  ).catch((error: unknown) => {
    if (error instanceof LeaseLost) return "stale";
    throw error;
  });
}

/** For a description: what may outlive the lease. The audit log has all of it. */
function remainder(left: string[]): string {
  if (left.length === 0) return "";
  const more = left.length > 3 ? ` and ${left.length - 3} more` : "";
  return `; may remain: ${left.slice(0, 3).join(", ")}${more}`;
}

/** @returns what may outlive the lease @throws Unavailable */
async function revokeAtTarget(
  context: LeaseContext,
  { id: leaseId, name, handle, expiresAt }: LeaseClaim,
  role: RoleRow,
  signal?: AbortSignal,
): Promise<string[]> {
  const plugin = context.plugins.find("credential", role.pluginSlug);
  if (!plugin)
    throw new Unavailable(`The plugin ${role.pluginSlug} is not enabled: add it to SVC_PLUGIN_CREDENTIAL`);
  const outcome = await callForRole(
    context,
    { role, plugin },
    "revoke",
    { leaseId, name, expiresAt: expiresAt.toISOString(), ...(handle === null ? {} : { handle }) },
    { signal, key: name },
  );
  if (outcome.ok) return outcome.value?.left ?? [];
  const { detail, frames, reason } = outcome;
  if (reason !== "aborted")
    context.log.warn({ plugin: plugin.slug, lease: leaseId, reason, frames }, `plugin failed: ${detail}`);
  throw workErrorOf(outcome);
}
