import type { Grouping, Percentiles, Stats } from "../../core/incident/stats/figures.ts";
import { queryText } from "../client/api_client.ts";
import { defineCommand } from "../command.ts";
import { UsageError } from "../errors.ts";
import { clientArgs } from "../incident/args.ts";
import { IncidentClient } from "../incident/incident.ts";
import { type Column, printTable } from "../table.ts";
import { printable, printJson } from "../text.ts";
import { isDay, localTime, parseWhen } from "../when.ts";

const groupings = ["week", "type", "priority", "service"] as const satisfies readonly Grouping[];

const columns: Column[] = [
  { header: "INCIDENTS" },
  { header: "COMMANDER" },
  { header: "REPORT", leaveOut: 3 },
  { header: "STABLE" },
  { header: "CLOSE", leaveOut: 4 },
  { header: "IMPACT", leaveOut: 5 },
  { header: "COST", leaveOut: 2 },
  { header: "TASKS", leaveOut: 1 },
];

const day = 86_400_000;

/** A day is one in UTC, as on the page: `days` later. */
function instantOf(option: string, text: string | undefined, now: Date, days = 0): string | undefined {
  if (text === undefined) return undefined;
  const word = text.trim();
  if (!isDay(word)) return parseWhen(option, text, now).toISOString();
  const start = parseWhen(option, `${word}T00:00Z`, now);
  return new Date(start.getTime() + days * day).toISOString();
}

export default defineCommand({
  summary: "Count incidents, how long they took and what they cost",
  args: {
    since: {
      type: "string",
      metavar: "TIME",
      description: "Incidents reported since then: 30d, 2026-11-20 (default: a Monday, for twelve weeks)",
    },
    until: {
      type: "string",
      metavar: "TIME",
      description: "Incidents reported before then; a day is included (default: now)",
    },
    by: {
      type: "enum",
      metavar: "GROUP",
      default: "week",
      description: "A line for each",
      choices: groupings,
    },
    csv: { type: "boolean", description: "Print CSV, with durations in seconds" },
    ...clientArgs,
  },
  examples: [
    "svc stats",
    "svc stats --since 365d --by service",
    "svc stats --since 2026-07-01 --until 2026-09-30 --csv > quarter.csv",
  ],
  notes: [
    "Half of the incidents took at most the first time, nine of ten at most the second one (p50 / p90). COMMANDER, REPORT, STABLE and CLOSE count from the report of an incident, IMPACT from its start. TASKS are open tasks of closed incidents. Weeks begin on Monday; weeks and days are in UTC. A range has at most five years. docs/numbers.md has the definitions.",
  ],
  async run({ since, until, by, csv, json }, io) {
    if (csv && json) throw new UsageError("--csv and --json exclude each other");
    const now = io.clock.now();
    const query = { since: instantOf("--since", since, now), until: instantOf("--until", until, now, 1), by };
    const stats = await IncidentClient.within(io, async (client) => {
      const found = await client.call<Stats<string>>("GET", `/stats${queryText(query)}`);
      if (since !== undefined) client.checkClock("--since", since);
      if (until !== undefined) client.checkClock("--until", until);
      return found;
    });
    const { csvOf, spanText } = await import("../../core/incident/stats/figures.ts");
    if (json) printJson(io, stats);
    else if (csv) io.stdout.write(csvOf(stats));
    else if (stats.total.incidents === 0)
      io.stderr.write(
        `No incidents were reported from ${localTime(stats.since)} to ${localTime(stats.until)}.\n`,
      );
    else {
      const times = ({ p50, p90 }: Percentiles) =>
        p50 === null || p90 === null ? "" : `${spanText(p50)} / ${spanText(p90)}`;
      const rows = [...stats.groups, { ...stats.total, name: "total" }].map((one) => [
        printable(one.name, 80),
        String(one.incidents),
        times(one.commander),
        times(one.report),
        times(one.stable),
        times(one.close),
        times(one.impact),
        String(one.cost),
        String(one.tasks),
      ]);
      printTable(io, [{ header: by.toUpperCase(), flexible: true }, ...columns], rows);
    }
    if (stats.restricted === "own")
      io.stderr.write("Restricted incidents count only if you take part in them.\n");
  },
});
