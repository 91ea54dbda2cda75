import type { incident } from "../../../drizzle/schema/index.ts";
import { Conflict } from "../../../platform/errors.ts";
import type { EventKind } from "../timeline/event.ts";

export type IncidentStatus = (typeof incident.$inferSelect)["status"];

export interface Transition {
  status: IncidentStatus;
  stableAt: Date | null;
  closedAt: Date | null;
  /** The timeline's events, in this order. */
  kinds: readonly EventKind[];
}

/**
 * Returns the effect of a status change: Active → Stable → Closed, and from both back to Active. Closing an Active
 * incident also marks it as stable, unless it was Closed before it was reopened. Undefined if the status does not change:
 * an incident that stays Stable keeps its time.
 *
 * @param stableAt since when it is Stable; of an Active incident, since when it was when it was Closed
 * @throws Conflict for Closed → Stable: make it Active first
 */
export function transition(
  from: IncidentStatus,
  to: IncidentStatus,
  at: Date,
  { stableAt }: { stableAt: Date | null },
): Transition | undefined {
  if (from === to) return undefined;
  switch (to) {
    case "Active":
      return { status: to, stableAt: null, closedAt: null, kinds: ["incident.reopened"] };
    case "Stable":
      if (from === "Closed") throw new Conflict("A Closed incident can only be reopened: make it Active");
      return { status: to, stableAt: at, closedAt: null, kinds: ["incident.stable"] };
    case "Closed":
      return stableAt
        ? { status: to, stableAt, closedAt: at, kinds: ["incident.closed"] }
        : { status: to, stableAt: at, closedAt: at, kinds: ["incident.stable", "incident.closed"] };
  }
}
