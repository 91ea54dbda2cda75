import { csvLine } from "../../../platform/csv.ts";

// What the numbers of incidents consist of, for the API, the pages and the command line. docs/numbers.md has the definitions.

export const groupings = ["week", "type", "priority", "service"] as const;
export type Grouping = (typeof groupings)[number];

export const usualWeeks = 12;
/** The longest range. */
export const mostYears = 5;
/** The group of incidents that affect no service. */
export const noService = "(no service)";

/** The durations, each with how it is headed and what it is. All but the last one begin with the report. */
export const timeFigures = ["commander", "report", "stable", "close", "impact"] as const;
export type TimeFigure = (typeof timeFigures)[number];

/** A duration in seconds. */
export interface Percentiles {
  /** Those that have it. */
  incidents: number;
  p50: number | null;
  p90: number | null;
}

export interface Figures extends Record<TimeFigure, Percentiles> {
  incidents: number;
  cost: number;
  /** Open follow-up tasks. */
  tasks: number;
}

export interface Group extends Figures {
  /** Of the type, priority or service. */
  id: number | null;
  /** Its name; of a week, its Monday. */
  name: string;
}

/** Names are single words, so that the API has the same ones. */
export interface Stats<Time = Date> {
  since: Time;
  until: Time;
  by: Grouping;
  /** Whether all Restricted incidents are counted, or only those in which the reader takes part. */
  restricted: "all" | "own";
  total: Figures;
  /** All weeks of the range, by their Mondays. */
  weeks: { week: string; incidents: number }[];
  groups: Group[];
}

const units = [
  ["d", 86_400],
  ["h", 3600],
  ["m", 60],
  ["s", 1],
] as const;

/** A duration in its two largest units: `45s`, `12m`, `3h 20m`, `2d 4h`. */
export function spanText(seconds: number): string {
  const largest = units.findIndex(([, length]) => seconds >= length);
  if (largest < 0) return "0s";
  let rest = seconds;
  const parts: string[] = [];
  for (const [unit, length] of units.slice(largest, largest + 2)) {
    const count = Math.floor(rest / length);
    rest -= count * length;
    if (count > 0) parts.push(`${count}${unit}`);
  }
  return parts.join(" ");
}

/** The groups as CSV (RFC 4180), a line each. Durations are in seconds. */
export function csvOf({ by, groups }: Pick<Stats<unknown>, "by" | "groups">): string {
  const header = [
    by,
    "incidents",
    ...timeFigures.flatMap((name) => [`${name}_incidents`, `${name}_p50_seconds`, `${name}_p90_seconds`]),
    "cost",
    "open_tasks",
  ];
  const lines = groups.map((group) => [
    group.name,
    group.incidents,
    ...timeFigures.flatMap((name) => [group[name].incidents, group[name].p50, group[name].p90]),
    group.cost,
    group.tasks,
  ]);
  return [header, ...lines].map(csvLine).join("");
}
