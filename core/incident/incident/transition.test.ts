import { describe, expect, test } from "bun:test";
import { incidentStatuses } from "../../../drizzle/schema/index.ts";
import { Conflict } from "../../../platform/errors.ts";
import { type IncidentStatus, type Transition, transition } from "./transition.ts";

const before = new Date("2026-11-20T10:00:00Z");
const at = new Date("2026-11-20T12:00:00Z");
const stable = "incident.stable";
const closed = "incident.closed";
const reopened = "incident.reopened";

// The outcome of each transition: no change, a refusal, or these times and timeline lines.
const expected: Record<
  `${IncidentStatus} ${IncidentStatus}`,
  "stays" | "refused" | Omit<Transition, "status">
> = {
  "Active Active": "stays",
  "Active Stable": { stableAt: at, closedAt: null, kinds: [stable] },
  "Active Closed": { stableAt: at, closedAt: at, kinds: [stable, closed] },
  "Stable Active": { stableAt: null, closedAt: null, kinds: [reopened] },
  "Stable Stable": "stays",
  "Stable Closed": { stableAt: before, closedAt: at, kinds: [closed] },
  "Closed Active": { stableAt: null, closedAt: null, kinds: [reopened] },
  "Closed Stable": "refused",
  "Closed Closed": "stays",
};

describe.each([...incidentStatuses])("from %s", (from) => {
  test.each([...incidentStatuses])("to %s", (to) => {
    const step = () => transition(from, to, at, { stableAt: from === "Active" ? null : before });
    const outcome = expected[`${from} ${to}`];
    if (outcome === "refused") expect(step).toThrow(Conflict);
    else expect(step()).toEqual(outcome === "stays" ? undefined : { status: to, ...outcome });
  });
});

test("an incident that was Closed before it was reopened stays stable since then when it is closed again", () => {
  expect(transition("Active", "Closed", at, { stableAt: before })).toEqual({
    status: "Closed",
    stableAt: before,
    closedAt: at,
    kinds: [closed],
  });
  expect(transition("Active", "Stable", at, { stableAt: before })).toMatchObject({ stableAt: at });
});
