import type { Database, Transaction } from "../drizzle/client.ts";
import { event } from "../drizzle/schema/index.ts";

export type EventKind = "document.created" | "document.updated" | "document.deleted";

export interface TimelineEvent {
  incidentId: number;
  at: Date;
  /** A user name, `worker` or `system`. */
  actor: string;
  kind: EventKind;
  /** For people, in one line. */
  description: string;
  /** Ids of what it tells of. */
  data: Record<string, number>;
}

/** Appends to the timeline of an incident, in the transaction of what it tells of. */
export async function tell(db: Database | Transaction, told: TimelineEvent): Promise<void> {
  await db.insert(event).values({ source: "core", ...told });
}
