import type { participantRoles } from "../../../drizzle/schema/index.ts";

// The cost of an incident as a pure function, against which the worker's SQL is compared (core/incident/cost/compute.ts).
// All numbers are integers, of milliseconds and of millionths: a cost is rounded up, so the last bit of a float would be a
// unit of currency.

type Role = (typeof participantRoles)[number];

export interface Formula {
  yearlyCost: number;
  yearlyHours: number;
  dailyHours: number;
  reviewHours: number;
  reviewHoursPerParticipant: number;
  /** The weight of an hour in each role. A role without one does not count. */
  multipliers: Partial<Record<Role, number>>;
}

/** A period in which somebody has or had a role in an incident. */
export interface RoleInterval {
  person: number;
  role: Role;
  assumedAt: Date;
  renouncedAt: Date | null;
}

export interface CostInput {
  /** When it became stable. Null while it is Active. */
  stableAt: Date | null;
  now: Date;
  roles: readonly RoleInterval[];
  /** The number of people who took part, each counted once. */
  participants: number;
}

export interface Cost {
  cost: number;
  /** Weighted seconds of work. */
  seconds: number;
  reviewHours: number;
  /** The price of an hour. */
  rate: number;
}

const hour = 3_600_000;
const day = 24 * hour;
const million = 1_000_000;

/**
 * If a person has several roles at the same time, the one with the highest multiplier counts. With equal multipliers,
 * the first one counts. A role counts for the time in it that remains after that. Above 24 h, d days and r hours are
 * ceil(d * dailyHours + r) hours.
 */
export function costOf(input: CostInput, formula: Formula): Cost {
  const { stableAt, participants } = input;
  const rate = Math.ceil(formula.yearlyCost / formula.yearlyHours);
  const seconds = weighed(input, formula).reduce((sum, one) => sum + secondsOf(one, formula.dailyHours), 0n);
  const review = stableAt
    ? millionths(formula.reviewHours) + millionths(formula.reviewHoursPerParticipant) * BigInt(participants)
    : 0n;
  const total = (seconds * BigInt(million) + review * 3600n) * BigInt(rate);
  const cost = Number(dividedUp(total, 3600n * BigInt(million)));
  return { cost, seconds: Number(seconds), reviewHours: Number(review) / million, rate };
}

interface Span {
  from: number;
  to: number;
}

interface Weighed {
  milliseconds: number;
  multiplier: bigint;
}

/** The time in each role, without the time in which the same person had a role with a higher multiplier. */
function weighed({ roles, stableAt, now }: CostInput, { multipliers }: Formula): Weighed[] {
  const end = stableAt ?? now;
  const spans = roles
    .map(({ person, role, assumedAt, renouncedAt }) => {
      const to = Math.min((renouncedAt ?? end).getTime(), stableAt?.getTime() ?? Number.POSITIVE_INFINITY);
      return { person, multiplier: millionths(multipliers[role] ?? 0), from: assumedAt.getTime(), to };
    })
    .filter(({ from, to }) => from < to);
  spans.sort((a, b) => Number(b.multiplier - a.multiplier) || a.from - b.from || b.to - a.to);
  return spans.map((span, at) => {
    const above = spans.slice(0, at).filter(({ person }) => person === span.person);
    return { milliseconds: lengthWithout(span, above), multiplier: span.multiplier };
  });
}

/** The length of a span without the parts that others cover. */
function lengthWithout(span: Span, others: readonly Span[]): number {
  let [left, reached] = [0, span.from];
  for (const { from, to } of [...others].sort((a, b) => a.from - b.from)) {
    if (from > reached) left += Math.min(from, span.to) - reached;
    reached = Math.max(reached, Math.min(to, span.to));
    if (from >= span.to) return left;
  }
  return left + span.to - reached;
}

/** A person who takes part for more than a day works only some hours of each full day. */
function secondsOf({ milliseconds, multiplier }: Weighed, dailyHours: number): bigint {
  const counted =
    milliseconds > day ? hoursOfDays(milliseconds, dailyHours) * BigInt(hour) : BigInt(milliseconds);
  return (counted * multiplier) / BigInt(1000 * million);
}

function hoursOfDays(milliseconds: number, dailyHours: number): bigint {
  const days = BigInt(Math.floor(milliseconds / day));
  const rest = BigInt(milliseconds % day);
  return dividedUp(
    days * millionths(dailyHours) * BigInt(hour) + rest * BigInt(million),
    BigInt(hour * million),
  );
}

function millionths(number: number): bigint {
  return BigInt(Math.round(number * million));
}

/** For numbers that are not negative. */
function dividedUp(number: bigint, by: bigint): bigint {
  return (number + by - 1n) / by;
}
