import { Elysia } from "elysia";
import {
  csvOf,
  type Figures,
  type Grouping,
  groupings,
  mostYears,
  type Percentiles,
  type Stats,
  spanText,
  timeFigures,
} from "../core/incident/stats/figures.ts";
import { readStats } from "../core/incident/stats/stats.ts";
import { InvalidInput } from "../platform/errors.ts";
import { parseInstant } from "../platform/instant.ts";
import { fileHeaders } from "./download.ts";
import { Alert, type Trouble } from "./pages/forms.tsx";
import { app } from "./paths.ts";
import type { PageContent, Site, Visit } from "./site.tsx";

const path = `${app}/numbers`;
const day = 86_400_000;

/** The numbers of incidents: a chart, tables, and what they mean. */
export function numbersPages(site: Site) {
  const { deps } = site;
  const read = ({ visitor, url: { searchParams } }: Visit) =>
    readStats(deps, visitor.actor, {
      since: startOf(searchParams, "since"),
      until: afterDay(startOf(searchParams, "until")),
      by: groupingOf(searchParams),
    });

  async function page(visit: Visit): Promise<PageContent> {
    const given = visit.url.searchParams;
    const asked = { since: given.get("since"), until: given.get("until"), by: groupingOf(given) };
    try {
      const stats = await read(visit);
      return {
        title: "Numbers",
        here: "numbers",
        content: <Numbers filled={rangeOf(stats)} stats={stats} />,
      };
    } catch (error) {
      if (!(error instanceof InvalidInput)) throw error;
      return { title: "Numbers", here: "numbers", content: <Numbers filled={asked} trouble={error} /> };
    }
  }

  async function csv(visit: Visit): Promise<Response> {
    const stats = await read(visit);
    const name = `incidents-by-${stats.by}-${dayOf(stats.since)}-${lastDayOf(stats)}.csv`;
    return new Response(csvOf(stats), { headers: fileHeaders(name, "text/csv") });
  }

  return new Elysia({ name: "numbers pages", prefix: "/numbers" })
    .get("/", site.read(page))
    .get("/csv", site.read(csv));
}

const dayOf = (at: Date) => at.toISOString().slice(0, 10);
const lastDayOf = ({ until }: Stats) => dayOf(new Date(until.getTime() - 1));
const rangeOf = (stats: Stats) => ({ since: dayOf(stats.since), until: lastDayOf(stats), by: stats.by });
const afterDay = (at: Date | undefined) => at && new Date(at.getTime() + day);
const groupingOf = (given: URLSearchParams) => groupings.find((one) => one === given.get("by")) ?? "week";

/** The start of a day. An empty field means the usual range. @throws InvalidInput */
function startOf(given: URLSearchParams, field: string): Date | undefined {
  const text = given.get(field) ?? "";
  return text === "" ? undefined : parseInstant(field, `${text}T00:00:00Z`);
}

interface Filled {
  since: string | null;
  until: string | null;
  by: Grouping;
}

function Numbers({ filled, stats, trouble }: { filled: Filled; stats?: Stats; trouble?: Trouble }) {
  return (
    <>
      <h1>Numbers</h1>
      <div class="row bar">
        <RangeForm {...filled} />
        {stats && (
          <a class="button" href={`${path}/csv?${new URLSearchParams(rangeOf(stats))}`} download>
            CSV
          </a>
        )}
      </div>
      <Alert trouble={trouble} />
      {stats && <Shown stats={stats} />}
      <Definitions />
    </>
  );
}

function RangeForm({ since, until, by }: Filled) {
  return (
    <form class="row filters" action={path}>
      <label>
        From <input type="date" name="since" value={since ?? undefined} />
      </label>
      <label>
        to <input type="date" name="until" value={until ?? undefined} />
      </label>
      <label>
        by{" "}
        <select name="by">
          {groupings.map((one) => (
            <option key={one} value={one} selected={one === by}>
              {one}
            </option>
          ))}
        </select>
      </label>
      <button type="submit">Show</button>
    </form>
  );
}

function Shown({ stats }: { stats: Stats }) {
  const { total, by, restricted } = stats;
  const range = `${dayOf(stats.since)} to ${lastDayOf(stats)}`;
  return (
    <>
      <p>
        <b>{total.incidents === 1 ? "1 incident" : `${total.incidents} incidents`}</b> reported from {range}.{" "}
        <span class="quiet">
          {restricted === "all"
            ? "Restricted incidents count, because you are an admin."
            : "Restricted incidents count only if you take part in them."}
        </span>
      </p>
      {total.incidents === 0 ? (
        <p class="empty">No incidents were reported in these days.</p>
      ) : (
        <>
          <div class={by === "week" ? undefined : "two"}>
            <Weeks weeks={stats.weeks} range={range} />
            {by !== "week" && <WeekTable weeks={stats.weeks} />}
          </div>
          <Groups stats={stats} />
        </>
      )}
    </>
  );
}

/** A bar for each week. The SVG is stretched to the width of the page, so it has no texts. */
function Weeks({ weeks, range }: { weeks: Stats["weeks"]; range: string }) {
  const most = Math.max(...weeks.map(({ incidents }) => incidents));
  return (
    <figure>
      <figcaption>Incidents by week, at most {most}</figcaption>
      <svg
        class="chart"
        role="img"
        aria-label={`Incidents by week, ${range}. The table has the numbers`}
        viewBox={`0 0 ${weeks.length} ${most}`}
        preserveAspectRatio="none"
      >
        {weeks.map(({ week, incidents }, at) => (
          <rect key={week} x={at + 0.1} y={most - incidents} width={0.8} height={incidents}>
            <title>{`${week}: ${incidents}`}</title>
          </rect>
        ))}
      </svg>
      <p class="axis quiet">
        <span>{weeks[0]!.week}</span>
        {weeks.length > 1 && <span>{weeks.at(-1)!.week}</span>}
      </p>
    </figure>
  );
}

function WeekTable({ weeks }: { weeks: Stats["weeks"] }) {
  return (
    <section class="weeks" tabIndex={0} aria-label="Incidents by week">
      <table>
        <thead>
          <tr>
            <th scope="col">Week of</th>
            <th scope="col" class="num">
              Incidents
            </th>
          </tr>
        </thead>
        <tbody>
          {weeks.map(({ week, incidents }) => (
            <tr key={week}>
              <th scope="row">{week}</th>
              <td class="num">{incidents}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

const headings: Readonly<Record<Grouping, string>> = {
  week: "Week of",
  type: "Type",
  priority: "Priority",
  service: "Service",
};

const timeNames: Readonly<Record<(typeof timeFigures)[number], string>> = {
  commander: "Commander",
  report: "Report",
  stable: "Stable",
  close: "Closed",
  impact: "Impact",
};

function Groups({ stats: { by, groups, total } }: { stats: Stats }) {
  return (
    <section class="scrolls" tabIndex={0} aria-label={`Numbers by ${by}`}>
      <table class="board numbers">
        <thead>
          <tr>
            <th scope="col">{headings[by]}</th>
            <th scope="col" class="num">
              Incidents
            </th>
            {timeFigures.map((name) => (
              <th key={name} scope="col" class="num">
                {timeNames[name]} <small>p50 / p90</small>
              </th>
            ))}
            <th scope="col" class="num">
              Cost
            </th>
            <th scope="col" class="num">
              Open tasks
            </th>
          </tr>
        </thead>
        <tbody>
          {groups.map((one) => (
            <Row key={one.id ?? one.name} name={one.name} of={one} />
          ))}
        </tbody>
        <tfoot>
          <Row name="All" of={total} />
        </tfoot>
      </table>
    </section>
  );
}

function Row({ name, of }: { name: string; of: Figures }) {
  return (
    <tr>
      <th scope="row" dir="auto">
        {name}
      </th>
      <td class="num">{of.incidents}</td>
      {timeFigures.map((time) => (
        <td key={time} class="num">
          <Times of={of[time]} among={of.incidents} />
        </td>
      ))}
      <td class="num">{of.cost}</td>
      <td class="num">{of.tasks}</td>
    </tr>
  );
}

/** Not broken into lines. */
const whole = (seconds: number) => spanText(seconds).replace(" ", "\u00a0");

/** How many incidents a duration is of, unless all have it. */
function Times({ of: { incidents, p50, p90 }, among }: { of: Percentiles; among: number }) {
  if (p50 === null || p90 === null) return <span class="quiet">–</span>;
  return (
    <>
      {whole(p50)} / {whole(p90)}
      {incidents < among && <small class="quiet"> of {incidents}</small>}
    </>
  );
}

const definitions = [
  [
    "Incidents",
    "Those reported in these days, in the week of their report. Weeks begin on Monday; days are in UTC.",
  ],
  [
    "p50 / p90",
    "Half of the incidents took at most the first time, nine of ten at most the second one. Incidents without it do not count; “of 9” says how many have it.",
  ],
  ["Commander", "From the report until somebody took the role of commander for the first time."],
  ["Report", "From the report of the incident to the first status report."],
  ["Stable, Closed", "From the report until then. Those that were reopened count as they are now."],
  ["Impact", "From its start, which may be before the report, to its end."],
  ["Cost", "The sum of the costs as they were last calculated."],
  ["Open tasks", "Tasks of closed incidents that nobody has finished."],
  ["Service", "An incident counts for each service that it affects."],
] as const;

function Definitions() {
  return (
    <section class="list">
      <h2>What these numbers mean</h2>
      <dl class="facts">
        {definitions.map(([name, text]) => (
          <>
            <dt>{name}</dt>
            <dd>{text}</dd>
          </>
        ))}
      </dl>
      <p class="quiet">A range has at most {mostYears} years.</p>
    </section>
  );
}
