import { useContext } from "preact/hooks";
import type { BoardFacts } from "../../core/incident/board/board.ts";
import type { Incident } from "../../core/incident/incident/incident.ts";
import { isSaid } from "../../core/incident/timeline/fold.ts";
import { nameOf, Person } from "../parts/person.tsx";
import { Reader } from "../parts/reader.ts";
import { Lock, Priority, Status } from "../parts/status.tsx";
import { Ago } from "../parts/time.tsx";
import { app, incidentPath } from "../paths.ts";

export const boardTabs = ["open", "closed", "all"] as const;
export type BoardTab = (typeof boardTabs)[number];

export interface BoardPage {
  tab: BoardTab;
  /** The ids of the chosen filters. */
  filters: { type?: string; priority?: string; mine: boolean };
  incidents: readonly Incident[];
  facts: ReadonlyMap<number, BoardFacts>;
  next: string | null;
  types: readonly (readonly [string, string])[];
  priorities: readonly (readonly [string, string])[];
  barsOf: (priorityId: number) => number;
}

/** The incidents, those of interest first. */
export function Board({ page }: { page: BoardPage }) {
  const { tab, incidents, facts, next } = page;
  const mine = incidents.filter(({ id }) => (facts.get(id)?.roles.length ?? 0) > 0).length;
  return (
    <>
      <div class="row head">
        <h1>{headingOf(page)}</h1>
        {mine > 0 && (
          <span class="quiet">{mine === 1 ? "1 of them is yours" : `${mine} of them are yours`}</span>
        )}
        <a class="button primary" href={`${app}/report`}>
          Report an incident
        </a>
      </div>
      <div class="row bar">
        <nav class="tabs" aria-label="Incidents">
          {boardTabs.map((one) => (
            <a key={one} href={addressOf(page, { tab: one })} aria-current={one === tab ? "page" : undefined}>
              {tabNames[one]}
            </a>
          ))}
        </nav>
        <Filters page={page} />
      </div>
      {incidents.length === 0 ? (
        <p class="empty">{emptyText(page)}</p>
      ) : (
        <table class="board">
          <thead>
            <tr>
              <th scope="col">Status</th>
              <th scope="col" class="wide">
                Priority
              </th>
              <th scope="col">Incident</th>
              <th scope="col" class="wide">
                Commander
              </th>
              <th scope="col" class="wide num">
                Last report
              </th>
              <th scope="col" class="num">
                Age
              </th>
            </tr>
          </thead>
          <tbody aria-live="polite" aria-relevant="additions">
            {incidents.map((incident) => (
              <Row key={incident.id} incident={incident} facts={facts.get(incident.id)} bars={page.barsOf} />
            ))}
          </tbody>
        </table>
      )}
      {next && (
        <p>
          <a href={addressOf(page, { cursor: next })}>Older</a>
        </p>
      )}
    </>
  );
}

const tabNames: Record<BoardTab, string> = { open: "Open", closed: "Closed", all: "All" };

function headingOf({ tab, incidents, next, filters }: BoardPage): string {
  const count = next ? `${incidents.length}+` : incidents.length;
  const noun = incidents.length === 1 ? "incident" : "incidents";
  const word = tab === "all" ? "" : `${tab} `;
  return tab === "open" && !isFiltered(filters) ? `${count} ${word}${noun}` : `${tabNames[tab]} incidents`;
}

const isFiltered = ({ type, priority, mine }: BoardPage["filters"]) => Boolean(type || priority || mine);

function emptyText({ tab, filters }: BoardPage): string {
  if (isFiltered(filters)) return "No incident matches these filters.";
  return tab === "open" ? "No open incidents. Enjoy the quiet." : "No incidents yet.";
}

/** The board's address with another tab or another part of the list. */
function addressOf({ tab, filters }: BoardPage, change: { tab?: BoardTab; cursor?: string }): string {
  const query = new URLSearchParams();
  const shown = change.tab ?? tab;
  if (shown !== "open") query.set("show", shown);
  if (filters.type) query.set("type", filters.type);
  if (filters.priority) query.set("priority", filters.priority);
  if (filters.mine) query.set("mine", "on");
  if (change.cursor) query.set("cursor", change.cursor);
  return query.size === 0 ? app : `${app}?${query}`;
}

function Filters({ page: { tab, filters, types, priorities } }: { page: BoardPage }) {
  const choice = (name: "type" | "priority", label: string, choices: BoardPage["types"]) => (
    <select name={name} aria-label={label}>
      <option value="">{label}: any</option>
      {choices.map(([value, text]) => (
        <option key={value} value={value} selected={filters[name] === value}>
          {text}
        </option>
      ))}
    </select>
  );
  return (
    <form class="row filters" action={app}>
      {tab !== "open" && <input type="hidden" name="show" value={tab} />}
      {choice("type", "Type", types)}
      {choice("priority", "Priority", priorities)}
      <label>
        <input type="checkbox" name="mine" checked={filters.mine} /> Mine
      </label>
      <button type="submit">Filter</button>
    </form>
  );
}

function Row({
  incident,
  facts,
  bars,
}: {
  incident: Incident;
  facts: BoardFacts | undefined;
  bars: BoardPage["barsOf"];
}) {
  const { id, name, title, status, visibility, commander, reportedAt, incidentPriority } = incident;
  return (
    <tr>
      <td>
        <Status of={status} />
      </td>
      <td class="wide">
        <Priority name={incidentPriority.name} bars={bars(incidentPriority.id)} />
      </td>
      <td class="title">
        <a href={incidentPath(id)} data-row dir="auto">
          {title}
        </a>{" "}
        <span class="name">{name}</span> <Lock visibility={visibility} />
        {facts && <Latest facts={facts} />}
      </td>
      <td class="wide">
        {commander ? (
          <Person email={commander.email} name={commander.name} />
        ) : (
          <span class="quiet">nobody yet</span>
        )}
      </td>
      <td class="wide num">{facts && <LastReport facts={facts} status={status} />}</td>
      <td class="num">
        <Ago at={reportedAt} />
      </td>
    </tr>
  );
}

/** What somebody said or did last, and the reader's roles. */
function Latest({ facts: { latest, roles } }: { facts: BoardFacts }) {
  const { user } = useContext(Reader);
  const yours = roles.filter((role) => role !== "participant" || roles.length === 1).join(", ");
  const text = latest && (latest.description.split("\n").find((line) => line !== "Status report:") ?? "");
  return (
    <small class="quiet">
      {yours !== "" && <span class="role">you: {yours}</span>}
      {latest && (
        <span class="latest">
          {isSaid(latest) ? (
            <>
              <bdi>{latest.actor === user ? "You" : nameOf(latest.actor)}</bdi>: “<bdi>{text}</bdi>”
            </>
          ) : (
            <bdi>{text}</bdi>
          )}
        </span>
      )}
    </small>
  );
}

function LastReport({ facts: { reportedAt, reportDueAt }, status }: { facts: BoardFacts; status: string }) {
  const { now } = useContext(Reader);
  const isLate = status === "Active" && reportDueAt < now;
  return (
    <span class={isLate ? "late" : undefined} title={isLate ? "A status report is overdue" : undefined}>
      {reportedAt ? <Ago at={reportedAt} /> : "none"}
    </span>
  );
}
