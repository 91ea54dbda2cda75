import { eq, sql } from "drizzle-orm";
import { transience } from "../../drizzle/database_error.ts";
import { accessRole } from "../../drizzle/schema/index.ts";
import { after } from "../../platform/clock.ts";
import { Unavailable } from "../../platform/errors.ts";
import { lockIncidents } from "../incident/incident/lock.ts";
import {
  attemptWork,
  failWork,
  finishWork,
  giveBackWork,
  LeaseLost,
  postponedSeconds,
} from "../outbox/work.ts";
import { workErrorOf } from "../plugin/call.ts";
import { changeOf, type LeaseClaim, type LeaseContext, marginSeconds, revocations } from "./lease.ts";
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
  return await attemptWork<void, "done" | "waiting" | "again" | "given_back">(
    claim,
    signal,
    () => revokeAtTarget(context, claim, role!, signal),
    {
      finish: async () => {
        const at = clock.now();
        // The call that issues it may still be running. Revoke again once it cannot be.
        const quiet = after(claim.createdAt, 2 * (config.pluginTimeout + marginSeconds));
        if (claim.endReason === "interrupted" && at < quiet) {
          const seconds = (quiet.getTime() - at.getTime()) / 1000;
          await giveBackWork(db, revocations, claim, at, seconds);
          return "waiting";
        }
        const recorded = db.transaction(async (tx) => {
          // A locked incident must not occupy the connections that other revocations need.
          if (claim.incidentId !== null) await tx.execute(sql`set local lock_timeout = '2s'`);
          await lockIncidents(tx, [claim.incidentId]);
          const failed = claim.issuedAt === null;
          await finishWork(tx, revocations, claim, at, { state: failed ? "Failed" : "Revoked" });
          const lease = { ...claim, role: role!.slug };
          await recordAccess(tx, {
            ...changeOf(lease, "system", at),
            action: failed ? "access.failed" : "access.revoked",
            description: failed
              ? `${claim.userName} did not receive ${role!.slug}`
              : `${claim.userName} no longer has ${role!.slug}`,
          });
        });
        try {
          await recorded;
          return "done";
        } catch (error) {
          if (transience(error) !== "contention") throw error;
          await giveBackWork(db, revocations, claim, at, postponedSeconds);
          return "waiting";
        }
      },
      fail: async (failure) => {
        await failWork(db, revocations, claim, clock.now(), { ...failure, permanent: false });
        const facts = { lease: claim.id, role: role!.slug, attempts: claim.attempts };
        if (claim.attempts > 1) log.error(facts, `cannot revoke a lease: ${failure.reason}`);
        return "again";
      },
      giveBack: async (seconds) => {
        await giveBackWork(db, revocations, claim, clock.now(), seconds);
        return "given_back";
      },
      onFault: (err) => log.error({ err, lease: claim.id }, "revocation failed: internal error"),
      endless: true,
    },
  ).catch((error: unknown) => {
    if (error instanceof LeaseLost) return "stale";
    throw error;
  });
}

/** @throws Unavailable */
async function revokeAtTarget(
  context: LeaseContext,
  { id: leaseId, name, handle, expiresAt }: LeaseClaim,
  role: RoleRow,
  signal?: AbortSignal,
): Promise<void> {
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
  if (outcome.ok) return;
  const { detail, frames, reason } = outcome;
  if (reason !== "aborted")
    context.log.warn({ plugin: plugin.slug, lease: leaseId, reason, frames }, `plugin failed: ${detail}`);
  throw workErrorOf(outcome);
}
