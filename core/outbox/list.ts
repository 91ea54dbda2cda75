import { asc, count, desc, getTableColumns, inArray, sql } from "drizzle-orm";
import type { SelectResultFields } from "drizzle-orm/query-builders/select.types";
import { delivery, type deliveryStates, flowStep, incident } from "../../drizzle/schema/index.ts";
import type { Context } from "../context.ts";

/** The states that operators see. Of a Split delivery they see the parts. */
export type DeliveryState = Exclude<(typeof deliveryStates)[number], "Split">;

const { key, state, queuedAt } = delivery;
const { task, about, individualId, subject, text, leaseUntil, topic, sequence, occurredAt, ...columns } =
  getTableColumns(delivery);

/**
 * A delivery for operators, without its text, which is only for readers of the incident. The recipient is the plugin's id
 * of a member of the conversation, not an address.
 */
export type DeliveryView = SelectResultFields<typeof columns>;

/** Returns the newest in these states. */
export async function listDeliveries(
  { db }: Pick<Context, "db">,
  { states, limit }: { states: readonly DeliveryState[]; limit: number },
): Promise<DeliveryView[]> {
  return db
    .select(columns)
    .from(delivery)
    .where(inArray(state, [...states]))
    .orderBy(desc(queuedAt), asc(key))
    .limit(limit);
}

/**
 * Counts the deliveries in each of these states. A Split delivery is counted only by its parts. Those that are Done are
 * never deleted: a million of them take a second.
 */
export async function countDeliveries<S extends DeliveryState>(
  { db }: Pick<Context, "db">,
  states: readonly S[],
): Promise<Record<S, number>> {
  const rows = await db
    .select({ state, n: count() })
    .from(delivery)
    .where(inArray(state, [...states]))
    .groupBy(state);
  const counts = states.map((wanted) => [wanted, rows.find((row) => row.state === wanted)?.n ?? 0]);
  return Object.fromEntries(counts) as Record<S, number>;
}

/** Unfinished work of either kind, for operators. */
export interface OpenWork {
  kind: "delivery" | "step";
  /** A delivery's key, or `<incident>/<step>`. */
  key: string;
  state: string;
  attempts: number;
  dueAt: Date | null;
  error: string | null;
  /** It is no longer retried automatically. */
  dead: boolean;
}

/** The key of a step, for operators. */
export const stepKey = sql<string>`${incident.name} || '/' || ${flowStep.step}`;

/** The dead first, then in the order in which they are due. */
export async function listWork(
  { db }: Pick<Context, "db">,
  { kind, dead = false, limit }: { kind?: OpenWork["kind"]; dead?: boolean; limit: number },
): Promise<OpenWork[]> {
  const rows = await db.execute<Omit<OpenWork, "dueAt"> & { due_at: string | null }>(sql`
    select kind, key, state, attempts, due_at, error, dead from (
      select 'delivery' as kind, key, state, attempts, due_at, error, state = 'Dead' as dead
      from ${delivery} where state in ('Queued', 'Dead')
      union all
      select 'step', ${stepKey}, ${flowStep.state}, attempts, due_at, error,
        ${flowStep.state} = 'Failed' and due_at is null
      from ${flowStep} join ${incident} on ${incident.id} = incident_id where ${flowStep.state} <> 'Done'
    ) work
    where (${kind ?? null}::text is null or kind = ${kind ?? null}) and (dead or not ${dead}::boolean)
    order by dead desc, due_at, key limit ${limit}`);
  return [...rows].map(({ due_at, ...one }) => ({
    ...one,
    dueAt: due_at === null ? null : new Date(due_at),
  }));
}
