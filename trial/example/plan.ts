import { randomOf } from "./random.ts";
import { availability } from "./texts/availability.ts";
import { data } from "./texts/data.ts";
import { others } from "./texts/others.ts";
import { recentAvailability } from "./texts/recent_availability.ts";
import type { Scenario } from "./texts/scenario.ts";
import { security } from "./texts/security.ts";
import { hoursAfter, hoursBefore } from "./time.ts";

/** When the states of an incident begin. */
export interface Planned {
  scenario: Scenario;
  reportedAt: Date;
  /** Stable for a while, and back to Active. */
  reopened?: { stableAt: Date; reopenedAt: Date };
  stableAt: Date | null;
  closedAt: Date | null;
}

const oldestHours = 89 * 24;
const newestHours = 5 * 24;

/** All incidents, the oldest first: those without a time of their own spread over three months. */
export function planIncidents(seed: string, now: Date): Planned[] {
  const random = randomOf(`${seed} plan`);
  const all = [...availability, ...recentAvailability, ...data, ...security, ...others];
  const free = all.filter(({ hoursAgo }) => hoursAgo === undefined);
  const step = (oldestHours - newestHours) / free.length;
  const hoursAgo = new Map(
    random
      .some(free, free.length)
      .map((one, index) => [one, oldestHours - step * (index + random.between(0, 0.9))]),
  );
  return all
    .map((scenario) =>
      planned(scenario, hoursAgo.get(scenario) ?? scenario.hoursAgo ?? newestHours, seed, now),
    )
    .sort((a, b) => a.reportedAt.getTime() - b.reportedAt.getTime());
}

function planned(scenario: Scenario, hoursAgo: number, seed: string, now: Date): Planned {
  const { status = "Closed", hours = hoursAgo, reopened } = scenario;
  const random = randomOf(`${seed} ${scenario.title}`);
  const reportedAt = hoursBefore(now, hoursAgo);
  const stableHours = status === "Active" ? hoursAgo : hours * random.between(0.9, 1.1);
  // At least an hour ago, so that all which follows from closing has happened as well.
  const closedHours = Math.min(stableHours + random.between(6, 40), hoursAgo - 1);
  return {
    ...{ scenario, reportedAt },
    ...(reopened && {
      reopened: {
        stableAt: hoursAfter(reportedAt, stableHours * 0.4),
        reopenedAt: hoursAfter(reportedAt, stableHours * 0.6),
      },
    }),
    stableAt: status === "Active" ? null : hoursAfter(reportedAt, stableHours),
    closedAt: status === "Closed" ? hoursAfter(reportedAt, closedHours) : null,
  };
}
