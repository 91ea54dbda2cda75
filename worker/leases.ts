import { and, eq } from "drizzle-orm";
import { expireRequests } from "../core/access/decide.ts";
import { endLeases } from "../core/access/end.ts";
import { type LeaseClaim, revocations } from "../core/access/lease.ts";
import { attemptRevocation } from "../core/access/revoke.ts";
import { claimWork, isDue } from "../core/outbox/work.ts";
import { leaseChannel } from "../core/wake.ts";
import { Listener } from "../drizzle/connection/listener.ts";
import { reasonOf } from "../drizzle/database_error.ts";
import { accessLease } from "../drizzle/schema/index.ts";
import type { WorkerDeps } from "./deps.ts";
import { Outage } from "./outage.ts";
import { processQueues, type QueueTimes, Wake } from "./queues.ts";
import { pause } from "./time.ts";

type LeaseDeps = Pick<WorkerDeps, "db" | "time" | "config" | "log" | "plugins" | "observed" | "outage">;

/** The concurrent revocations of one role, limited so that they do not overload its target. */
const atOnce = 8;
/**
 * The minimum time that a revocation occupies its place, which limits a worker to 50 per second for one role: without it,
 * 1,000 leases that expire together delay other requests.
 */
const placeMilliseconds = 160;

/** Ends leases and revokes them at their targets until `stop` aborts. Any number of workers may share the work. */
export async function revokeLeases(
  deps: LeaseDeps,
  stop: AbortSignal,
  times: QueueTimes = {},
): Promise<void> {
  const { log, outage = new Outage(log), observed } = deps;
  const context = () => {
    const { db, time: clock, config, plugins } = deps;
    return { db: db(), clock, config, log, plugins };
  };
  const due = async () => {
    const now = context();
    await expireRequests(now);
    await endLeases(now, stop);
    const among = and(eq(accessLease.state, "Revoking"), isDue(accessLease, now.clock.now()));
    return await now.db.selectDistinct({ roleId: accessLease.roleId }).from(accessLease).where(among);
  };
  const attempt = async (claim: LeaseClaim, over: AbortSignal) => {
    try {
      const work = () => attemptRevocation(context(), claim, over);
      await Promise.all([observed ? observed.revocation(work) : work(), pause(placeMilliseconds, over)]);
    } catch (err) {
      // The claim times out, and a worker retries.
      log.warn({ err, lease: claim.id }, "cannot record the outcome of a revocation");
    }
  };
  const claim = async ({ roleId }: { roleId: number }, limit: number) => {
    const among = and(eq(accessLease.state, "Revoking"), eq(accessLease.roleId, roleId));
    const order = [accessLease.dueAt, accessLease.id];
    return await claimWork(context(), revocations, { among, order, limit });
  };
  const wake = new Wake();
  // Without this connection, polls find the same later.
  const listener = new Listener(deps.config.databaseDirectUrl ?? deps.config.databaseUrl!, log);
  listener.subscribe({ channels: { [leaseChannel]: () => wake.now() }, listening: () => wake.now() });
  listener
    .start()
    .catch((err) => log.warn({ err, ...reasonOf(err) }, "there is no listening database connection"));
  await processQueues(
    { due, nameOf: ({ roleId }) => String(roleId), atOnce, claim, attempt },
    outage,
    stop,
    times,
    wake,
  );
  await listener.stop();
}
