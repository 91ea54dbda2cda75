import { and, eq, type SQL, sql } from "drizzle-orm";
import type { Database } from "../../drizzle/client.ts";
import { accessLease, accessRole } from "../../drizzle/schema/index.ts";
import { NotFound } from "../../platform/errors.ts";
import type { Actor, Context } from "../context.ts";
import { type List, type ListQuery, startPage } from "../list/page.ts";
import type { Claim, WorkKind } from "../outbox/work.ts";
import type { AppContext } from "../plugin/context.ts";

// A lease is one issued credential:
//
// 1. Issuing: committed with the name of the credential before the plugin is called (issue.ts). Whatever happens next, the
//    lease ends with a revocation by that name.
// 2. Active: the plugin has answered. The secret goes to the caller and is not stored anywhere.
// 3. Revoking: the lease expired, lost its basis (basis.ts), was revoked, or stayed Issuing for too long. Workers find all
//    of these with one query (`endLeases` in end.ts): when something is recorded that can end a lease (core/wake.ts), and with
//    each poll.
// 4. Revoked, or Failed if it was never Active. Revocation (revoke.ts) is retried without limit.

/** Added to the plugin's timeout. A lease that is still Issuing after both was left behind by a process that died. */
export const marginSeconds = 30;

export type LeaseRow = typeof accessLease.$inferSelect;
export type LeaseState = LeaseRow["state"];
/** A lease with the slug of its role. */
export type Lease = LeaseRow & { role: string };

export type LeaseClaim = LeaseRow & Claim;

/** Revocations as durable work. */
export const revocations: WorkKind<LeaseClaim> = {
  table: accessLease,
  isRow: ({ id }) => eq(accessLease.id, id),
  states: { waiting: "Revoking", running: "Revoking", failed: "Revoking", done: "Revoked" },
  // The credential may still work, so retries never stop, and they succeed soon after the target is back.
  backoff: { firstSeconds: 2, longestSeconds: 60, mostAttempts: Number.POSITIVE_INFINITY },
};

/** For a revocation that needs a decision of a person: it is retried less and less often, and counts as stuck at once. */
export const undecidedRevocations: WorkKind<LeaseClaim> = {
  ...revocations,
  backoff: { firstSeconds: 2, longestSeconds: 3600, mostAttempts: Number.POSITIVE_INFINITY },
};

/** A context outside a transaction, because a plugin is called between two transactions. */
export type LeaseContext = Omit<AppContext, "db"> & { db: Database };

export const earlier = (one: Date, other: Date): Date => (one < other ? one : other);

/** When a credential ends: at `expiresAt`, or before if its plugin says so. A plugin cannot extend it. */
export function earlierEnd(answer: { expiresAt?: string }, expiresAt: Date): Date {
  return earlier(new Date(answer.expiresAt ?? expiresAt), expiresAt);
}

/** The fields of a log entry that all changes of a lease share. */
export const changeOf = (lease: Lease, actor: string, at: Date) => ({
  at,
  actor,
  incidentId: lease.incidentId,
  subject: `lease/${lease.id}`,
  data: { lease_id: lease.id, role: lease.role, name: lease.name },
});

const leases: List<"created_at"> = {
  name: "access_leases",
  id: accessLease.id,
  sorts: { created_at: { by: accessLease.createdAt, kind: "instant" } },
  defaultSort: "-created_at",
};

export const maySee = ({ admin, user }: Actor): SQL => (admin ? sql`true` : eq(accessLease.userName, user));
const leaseColumns = { lease: accessLease, role: accessRole.slug };

export interface LeaseFilters {
  state?: LeaseState;
  user?: string;
  role?: string;
  incident?: string;
}

export const matching = ({ state, user, role, incident }: LeaseFilters): SQL | undefined =>
  and(
    state && eq(accessLease.state, state),
    user === undefined ? undefined : eq(accessLease.userName, user),
    role === undefined
      ? undefined
      : sql`${accessLease.roleId} = (select id from access_role where slug = ${role})`,
    incident === undefined ? undefined : eq(accessLease.incidentName, incident),
  );

/** One page of the actor's leases, or of all leases for admins, newest first. @throws InvalidInput */
export async function listLeases(
  { db }: Pick<Context, "db">,
  actor: Actor,
  { state, user, role, incident, ...query }: ListQuery & LeaseFilters,
): Promise<{ items: Lease[]; next_cursor: string | null }> {
  const filters = { state, user, role, incident };
  const page = startPage(leases, query, filters);
  const rows = await db
    .select({ ...leaseColumns, key: page.key })
    .from(accessLease)
    .innerJoin(accessRole, eq(accessRole.id, accessLease.roleId))
    .where(page.within(and(maySee(actor), matching(filters))))
    .orderBy(...page.orderBy)
    .limit(page.limit);
  return page.finish(rows.map(({ lease, role: slug, key }) => ({ item: { ...lease, role: slug }, key })));
}

/** @throws NotFound also for another user's lease, except for admins */
export async function getLease({ db }: Pick<Context, "db">, actor: Actor, id: number): Promise<Lease> {
  const [found] = await db
    .select(leaseColumns)
    .from(accessLease)
    .innerJoin(accessRole, eq(accessRole.id, accessLease.roleId))
    .where(and(eq(accessLease.id, id), maySee(actor)));
  if (!found) throw new NotFound("There is no such lease");
  return { ...found.lease, role: found.role };
}
