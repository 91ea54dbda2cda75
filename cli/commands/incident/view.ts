import { folded, isSaid, saidKinds } from "../../../core/incident/timeline/fold.ts";
import {
  type Entry,
  entryMark,
  impactText,
  notedAt,
  removedText,
  shortName,
  visibilityText,
} from "../../../core/incident/words.ts";
import { defineCommand } from "../../command.ts";
import { type Affected, affectedBy, affectedLine, nothingAffected } from "../../incident/affected.ts";
import { roles as allRoles, clientArgs, idArg } from "../../incident/args.ts";
import {
  IncidentClient,
  type IncidentDetail,
  ifUnknown,
  type Message,
  type Participant,
  type StatusReport,
  type Task,
  type TimelineEvent,
} from "../../incident/incident.ts";
import { type Link, linkLines, linksOf } from "../../incident/link.ts";
import { fullNameOf, nameOf, peopleOf } from "../../incident/people.ts";
import { linkText, statusStyle, stylesOf, whenText } from "../../incident/text.ts";
import { linesOf, withMark } from "../../incident/watch_text.ts";
import { idOf } from "../../incident/write.ts";
import type { Io } from "../../io.ts";
import { widthOf, wrapped } from "../../table.ts";
import { printable, printableLines, printJson } from "../../text.ts";

export default defineCommand({
  summary: "Show an incident",
  args: {
    ...idArg,
    timeline: {
      type: "boolean",
      description: "Show the whole timeline, and every event in a line of its own",
    },
    ...clientArgs,
  },
  examples: ["svc incident view INC-44", "svc incident view --timeline", "svc incident view 44 --json"],
  notes: [
    "The timeline has the last ten status reports, notes and messages, and the last ten lines. What the server does by itself shares a line with what it follows from. --json has everything.",
  ],
  async run({ timeline, json, ...named }, io) {
    const isWhole = timeline === true || json === true;
    const view = await IncidentClient.within(io, async (client) =>
      readView(client, await client.resolve(idOf(named)), isWhole ? Number.POSITIVE_INFINITY : readEvents),
    );
    if (json) printJson(io, view);
    else io.stdout.write(viewText(view, io, isWhole));
  },
});

/** An incident with what `svc incident view` shows of it. */
interface IncidentView extends IncidentDetail {
  /** Those who take part now. */
  participants: Participant[];
  /** What it affects, from the catalog. */
  affected: Affected;
  /** Other incidents. */
  links: Link[];
  last_report: StatusReport | null;
  open_tasks: Task[];
  /** Also those to or from the user alone. Oldest first, like the events. */
  messages: Message[];
  events: TimelineEvent[];
}

/** Lines of the timeline, and at least as many reports, notes and messages. */
const shownLines = 10;
/** A line may have several events. */
const readEvents = 100;

async function readView(
  client: IncidentClient,
  incident: IncidentDetail,
  mostEvents: number,
): Promise<IncidentView> {
  const path = `/incidents/${incident.id}`;
  const tasks = { incident_id: String(incident.id), status: "Open" };
  const all = Number.POSITIVE_INFINITY;
  const [participants, affected, links, reports, open_tasks, messages, newest] = await Promise.all([
    client.participants(incident),
    affectedBy(client, incident).catch(ifUnknown(nothingAffected)),
    linksOf(client, incident).catch(ifUnknown<Link[]>([])),
    client.list<StatusReport>(`${path}/reports/`, {}, 1),
    client.list<Task>("/tasks/", tasks, all),
    client.list<Message>(`${path}/messages/`, {}, mostEvents),
    client.list<TimelineEvent>(`${path}/events/`, {}, mostEvents),
  ]);
  const last_report = reports[0] ?? null;
  // What people said may be older than so many other events.
  const said =
    newest.length < mostEvents
      ? []
      : await Promise.all(
          saidKinds.map((kind) =>
            client.list<TimelineEvent>(`${path}/events/`, { kind, sort: "-id" }, shownLines),
          ),
        );
  const events = [...new Map([...newest, ...said.flat()].map((event) => [event.id, event])).values()];
  return {
    ...incident,
    participants,
    affected,
    links,
    last_report,
    open_tasks,
    messages: messages.reverse(),
    events: events.sort(byTime),
  };
}

/** A backdated note is where it happened. */
function byTime(a: TimelineEvent, b: TimelineEvent): number {
  return a.at.localeCompare(b.at) || a.id - b.id;
}

function viewText(view: IncidentView, io: Io, isWhole: boolean): string {
  const parts = [
    header(view, io),
    roles(view, io),
    report(view, io),
    tasks(view, io),
    timelineText(view, io, isWhole),
  ];
  return `${parts
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join("\n"))
    .join("\n\n")}\n`;
}

function header(view: IncidentView, io: Io): string[] {
  const styled = stylesOf(io);
  const kind = [view.incident_priority.name, view.incident_type.name, visibilityText(view.visibility)];
  const status = styled(view.status, statusStyle[view.status]);
  const reporter = view.reporter ? ` by ${nameOf(view.reporter)}` : "";
  const times = [`Reported ${whenText(view.reported_at, io)}${reporter}`];
  if (view.stable_at) times.push(`stable ${whenText(view.stable_at, io)}`);
  if (view.closed_at) times.push(`closed ${whenText(view.closed_at, io)}`);
  const lines = [
    styled(`${view.name}  ${printable(view.title)}`, "bold"),
    ...wrapped([status, ...kind.map((word) => printable(word, 80))].join(" · "), widthOf(io.stdout)),
    ...wrapped(times.join(", "), widthOf(io.stdout)),
  ];
  const impact = impactText(view, (instant) => whenText(instant, io));
  if (impact !== undefined) lines.push(...wrapped(`Impact ${impact}`, widthOf(io.stdout)));
  const links = (view.conversations ?? []).filter(({ weblink }) => weblink !== null);
  for (const { plugin_slug, weblink } of links)
    lines.push(`Conversation: ${linkText(printable(plugin_slug), weblink!, io)}`);
  const affects = affectedLine(view.affected);
  if (affects !== undefined) lines.push(affects);
  lines.push(...linkLines(view.links).flatMap((line) => wrapped(line, widthOf(io.stdout))));
  if (view.description.trim() !== "")
    lines.push("", ...printableLines(view.description).flatMap((line) => wrapped(line, widthOf(io.stdout))));
  if (view.resolution?.trim()) lines.push("", "Resolution", ...indented(view.resolution, io));
  return lines;
}

/** Who decides comes first. */
const inOrder: readonly string[] = allRoles;

function roles({ participants }: IncidentView, io: Io): string[] {
  const holders = new Map<string, string[]>();
  for (const { individual, roles } of participants) {
    for (const { role } of roles.filter(({ renounced_at }) => renounced_at === null))
      holders.set(role, [...(holders.get(role) ?? []), fullNameOf(individual)]);
  }
  if (holders.size === 0) return [];
  const width = Math.max(...[...holders.keys()].map((role) => role.length));
  const rank = (role: string) => (inOrder.includes(role) ? inOrder.indexOf(role) : inOrder.length);
  const sorted = [...holders].sort(([a], [b]) => rank(a) - rank(b));
  return [
    "Roles",
    ...sorted.flatMap(([role, people]) => hanging(`  ${role.padEnd(width)}  `, people.join(", "), io)),
  ];
}

function report({ last_report }: IncidentView, io: Io): string[] {
  if (last_report === null) return [];
  const { author, created_at, conditions, actions, needs, event_id } = last_report;
  const when = (instant: string) => whenText(instant, io);
  const title = `Last report (${nameOf(author)}, ${when(created_at)})`;
  const removed = removedText(last_report, when);
  return [
    ...withMark([title], entryMark(event_id, last_report, when), io),
    ...(removed === undefined ? [] : [`  ${removed}`]),
    ...section("Conditions", conditions, io),
    ...section("Actions", actions, io),
    ...section("Needs", needs, io),
  ];
}

function section(title: string, text: string, io: Io): string[] {
  if (text.trim() === "") return [];
  const [first = "", ...more] = printableLines(text);
  const label = `  ${title}:`.padEnd(14);
  return [...hanging(label, first, io), ...more.flatMap((line) => hanging(" ".repeat(14), line, io))];
}

function tasks({ open_tasks }: IncidentView, io: Io): string[] {
  if (open_tasks.length === 0) return [];
  const now = io.clock.now();
  const lines = open_tasks.flatMap((task) => {
    const people = peopleOf(task);
    const late = new Date(task.resolve_by) < now ? "overdue, " : "";
    const [first = ""] = printableLines(task.description);
    const about = `(${people ? `${people}, ` : ""}${late}due ${whenText(task.resolve_by, io)})`;
    return hanging(`  ${task.id}  `, `${first}  ${about}`, io);
  });
  return [`Open tasks (${open_tasks.length})`, ...lines];
}

/** A line for each entry, and more for texts of several lines. */
function timelineText(
  { name, events, messages, last_report }: IncidentView,
  io: Io,
  isWhole: boolean,
): string[] {
  if (events.length === 0) return [];
  const all = [...events, ...messages.flatMap(directMessage)].sort(byTime);
  const entries: Entry[] = isWhole ? all.map((event) => ({ event, more: [] })) : folded(all);
  // The last that were written: a backdated note may have happened long before.
  const said = new Set(
    entries
      .filter(({ event }) => isSaid(event))
      .sort(({ event: a }, { event: b }) => writtenAt(a).localeCompare(writtenAt(b)) || a.id - b.id)
      .slice(-shownLines),
  );
  const shown = isWhole
    ? entries
    : entries.filter((entry, at) => at >= entries.length - shownLines || said.has(entry));
  const isCut = shown.length < entries.length || (!isWhole && events.length >= readEvents);
  return [
    "Timeline",
    ...(isCut ? hanging("  ", `Not all of it: svc incident view ${name} --timeline`, io) : []),
    ...shown.flatMap((entry) => entryLines(entry, isWhole ? null : last_report, io)),
  ];
}

function writtenAt(event: TimelineEvent): string {
  return notedAt(event) ?? event.at;
}

/** A message to one person is not on the timeline of everybody. */
function directMessage({ author, recipient, text, event_id: _, ...message }: Message): TimelineEvent[] {
  if (author === null || recipient === null) return [];
  const data = { recipient: recipient.email };
  return [
    { ...message, id: 0, actor: author.email, source: "core", kind: "message.sent", description: text, data },
  ];
}

function entryLines(entry: Entry, lastReport: StatusReport | null, io: Io): string[] {
  const { at, actor, kind, data } = entry.event;
  const begin = `  ${whenText(at, io)}  ${shortName(actor)}  `;
  const when = (instant: string) => whenText(instant, io);
  const isAbove = kind === "report.written" && data.report_id === lastReport?.id;
  const [first = "", ...more] = isAbove ? ["Status report (above)"] : linesOf(entry, begin, io, when);
  const [line = "", ...rest] = wrapped(`${begin}${first}`, narrower(io, 4));
  const below = [...rest.map((one) => one.trimStart()), ...more];
  return [line, ...below.flatMap((one) => hanging("      ", one, io))];
}

function indented(text: string, io: Io): string[] {
  return printableLines(text).flatMap((line) => hanging("  ", line, io));
}

/** A text after its label; on a terminal, what does not fit continues below its beginning. */
function hanging(label: string, text: string, io: Io): string[] {
  const [first = "", ...more] = wrapped(text, narrower(io, Bun.stringWidth(label)));
  const space = " ".repeat(Bun.stringWidth(label));
  return [`${label}${first}`.trimEnd(), ...more.map((line) => `${space}${line}`)];
}

function narrower({ stdout }: Io, columns: number): number | undefined {
  const width = widthOf(stdout);
  return width === undefined ? undefined : Math.max(10, width - columns);
}
