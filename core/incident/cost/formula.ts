import type { participantRoles } from "../../../drizzle/schema/index.ts";

// The cost of an incident, as a pure function. The worker computes it in SQL, for thousands at a time (compute.ts); this
// is what that has to agree with. Everything is whole numbers, of milliseconds and of millionths: a cost is rounded up,
// so the last bit of a float would be a unit of currency.

type Role = (typeof participantRoles)[number];

export interface Formula {
  yearlyCost: number;
  yearlyHours: number;
  dailyHours: number;
  reviewHours: number;
  reviewHoursPerParticipant: number;
  /** The share of an hour that an hour in the role counts; nothing for a role that is not named. */
  multipliers: Partial<Record<Role, number>>;
}

/** A role that somebody had in an incident, or has. */
export interface RoleInterval {
  person: number;
  role: Role;
  assumedAt: Date;
  renouncedAt: Date | null;
}

export interface CostInput {
  /** When it became stable; null while it is Active. */
  stableAt: Date | null;
  now: Date;
  roles: readonly RoleInterval[];
  /** People who took part, each once. */
  participants: number;
}

export interface Cost {
  cost: number;
  /** Seconds of work, weighted. */
  seconds: number;
  reviewHours: number;
  /** Of an hour. */
  rate: number;
}

const hour = 3_600_000;
const day = 24 * hour;
const million = 1_000_000;

/**
 * Of roles that one person has at the same time, the one with the highest multiplier counts; of equal ones, the first.
 * What a role counts is the time in it that is left: over 24 h, d days and r hours are ceil(d * dailyHours + r) hours.
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

/** The time in each role, without that in which the same person had one that counts more. */
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

/** How long a span is, without what others cover of it. */
function lengthWithout(span: Span, others: readonly Span[]): number {
  let [left, reached] = [0, span.from];
  for (const { from, to } of [...others].sort((a, b) => a.from - b.from)) {
    if (from > reached) left += Math.min(from, span.to) - reached;
    reached = Math.max(reached, Math.min(to, span.to));
    if (from >= span.to) return left;
  }
  return left + span.to - reached;
}

/** Who is in it for more than a day works so many hours of each whole one. */
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

/** Of numbers that are not negative. */
function dividedUp(number: bigint, by: bigint): bigint {
  return (number + by - 1n) / by;
}
