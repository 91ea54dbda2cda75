import { gte, isNull, sql } from "drizzle-orm";
import { accessLease } from "../../drizzle/schema/index.ts";
import type { Context } from "../context.ts";

/** About a minute of failed attempts (`revocations.backoff`), which is longer than a target takes to restart. */
export const stuckAttempts = 5;

export interface LeaseCounts {
  issuing: number;
  active: number;
  revoking: number;
  /** The leases in `revoking` that failed at least `stuckAttempts` times, or for which a person has to decide something. */
  stuck: number;
}

/** Counts the leases that have not ended. */
export async function countLeases({ db }: Pick<Context, "db">): Promise<LeaseCounts> {
  const { state, attempts, finishedAt } = accessLease;
  const inState = (name: string) => sql<number>`(count(*) filter (where ${state} = ${name}))::int`;
  const [counts] = await db
    .select({
      issuing: inState("Issuing"),
      active: inState("Active"),
      revoking: inState("Revoking"),
      stuck: sql<number>`(count(*) filter (where ${state} = 'Revoking' and ${gte(attempts, stuckAttempts)}))::int`,
    })
    .from(accessLease)
    .where(isNull(finishedAt));
  return counts!;
}
