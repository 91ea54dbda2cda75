import { type Entry, entryText, markOf, shortName } from "../../core/incident/words.ts";
import type { Session } from "../client/token.ts";
import type { Io } from "../io.ts";
import { cut, widthOf } from "../table.ts";
import { jsonText, printable, printableLines } from "../text.ts";
import type { Incident, TimelineEvent } from "./incident.ts";
import { nameOf } from "./people.ts";
import { ageText, statusStyle, stylesOf, titleOf } from "./text.ts";

// How `svc incident watch` shows events and incidents. A line of an event stays on the terminal, where a relative time
// would not stay true: it has the time of day.

/** An event, and the name of its incident. */
export interface WatchedEvent extends TimelineEvent {
  incident: string;
}

/** What stdout gets: lines of JSON, lines for people on a terminal, or lines for other programs. */
export function eventsText(
  entries: readonly Entry<WatchedEvent>[],
  io: Io,
  json: boolean,
  withIncident = false,
): string {
  if (json) return entries.flatMap(({ event, more }) => [event, ...more].map(jsonLine)).join("");
  if (!io.stdout.isTTY) return entries.map(plainLine).join("");
  const lines = entries.flatMap((entry) => terminalLines(entry, io, withIncident));
  return lines.map((line) => `${line}\n`).join("");
}

/** One line of NDJSON: the event as the API has it, and the name of its incident. */
function jsonLine({ incident, ...event }: WatchedEvent): string {
  return `${jsonText({ incident, ...event })}\n`;
}

/** One line for programs: time, incident, actor and text, without line breaks. */
function plainLine(entry: Entry<WatchedEvent>): string {
  const { at, incident, actor } = entry.event;
  const when = (instant: string) => instant;
  const text = [oneLine(entryText(entry, when)), markOf(entry, when)].join(" ").trimEnd();
  return `${at}  ${incident}  ${printable(actor, 320)}  ${text}\n`;
}

/** The lines of an entry on a terminal; the further ones of a long text are indented. */
export function terminalLines(entry: Entry<WatchedEvent>, io: Io, withIncident = false): string[] {
  const { at, incident, actor } = entry.event;
  const styled = stylesOf(io);
  const begin = [timeText(at, io), ...(withIncident ? [incident] : []), shortName(actor), ""].join("  ");
  const [first = "", ...rest] = linesOf(entry, begin, io, (instant) => timeText(instant, io));
  return [
    `${begin}${first}`.replace(timeText(at, io), (time) => styled(time, "dim")),
    ...rest.map((line) => `    ${line}`.trimEnd()),
  ];
}

/**
 * The lines of an entry after `begin`, with its name after the text. What follows from an event is cut to the line, and left
 * out if there is no room.
 */
export function linesOf(
  entry: Entry,
  begin: string,
  { stdout, env }: Pick<Io, "stdout" | "env">,
  when: (instant: string) => string,
): string[] {
  const { event, more } = entry;
  const text = entryText(entry, when);
  if (more.length === 0) return withMark(printableLines(text), markOf(entry, when), { stdout, env });
  const [line, alone] = [oneLine(text), oneLine(event.description)];
  const width = widthOf(stdout);
  if (width === undefined) return [line];
  // Within the columns in which `svc incident view` wraps a line.
  const room = width - 4 - Bun.stringWidth(begin);
  return [Bun.stringWidth(alone) < room ? cut(line, room) : alone];
}

/** Adds the mark of an entry to the last line of its text. */
export function withMark(lines: readonly string[], mark: string, io: Pick<Io, "stdout" | "env">): string[] {
  if (mark === "") return [...lines];
  return [...lines.slice(0, -1), `${lines.at(-1) ?? ""} ${stylesOf(io)(mark, "dim")}`];
}

/** The same in one line of at most so many columns. */
export function shortLine(entry: Entry<WatchedEvent>, io: Io, width: number): string {
  const { at, incident, actor } = entry.event;
  const text = entryText(entry, (instant) => timeText(instant, io));
  return cut([timeText(at, io), incident, shortName(actor), oneLine(text)].join("  "), width);
}

function oneLine(text: string): string {
  return printable(text.trim().replace(/\s+/g, " "), 20_000);
}

/** `14:05:09` today, `Nov 20 14:05` on another day, in the local time zone. */
function timeText(instant: string, { clock }: Pick<Io, "clock">): string {
  const at = new Date(instant);
  const two = (number: number) => String(number).padStart(2, "0");
  const time = `${two(at.getHours())}:${two(at.getMinutes())}`;
  if (at.toDateString() === clock.now().toDateString()) return `${time}:${two(at.getSeconds())}`;
  const month = at.toLocaleDateString("en", { month: "short" });
  return `${month} ${two(at.getDate())} ${time}`;
}

const lastMinutes = 10;

/**
 * Shown in the last minutes of a sign-in: watching ends with it, unless the user signs in again. That it has ended, only the
 * server says: if it is long over by our clock and the stream continues, our clock was set ahead meanwhile.
 */
export function endingText({ expiresAt }: Session, { clock }: Pick<Io, "clock">): string | undefined {
  const left = (expiresAt.getTime() - clock.now().getTime()) / 60_000;
  if (left > lastMinutes || left < -1) return undefined;
  return left <= 1 ? "signed out in a minute: svc login" : `signed out in ${Math.ceil(left)}m: svc login`;
}

/**
 * The state of an incident in one line of at most `width` columns; `connection` comes first because it is what the reader
 * must not miss.
 */
export function statusText(
  incident: Incident,
  io: Io,
  width: number,
  connection: string | undefined = undefined,
): string {
  const { name, status, incident_priority, commander, reported_at } = incident;
  const age = ageText(new Date(reported_at), io.clock.now());
  const before = [...(connection === undefined ? [] : [connection]), name, status];
  const isWide = width >= 60;
  const people = isWide && commander ? [cut(nameOf(commander), 20)] : [];
  const after = [...(isWide ? [cut(printable(incident_priority.name), 20)] : []), ...people, age];
  const separator = " · ";
  const fixed = Bun.stringWidth([...before, "", ...after].join(separator));
  const shown = cut(titleOf(incident), Math.max(0, width - fixed));
  const parts = [...before, ...(shown === "" || shown === "…" ? [] : [shown]), ...after];
  const line = cut(parts.join(separator), width);
  // Only after it was cut to the width.
  return line.replace(` ${status} `, ` ${stylesOf(io)(status, statusStyle[status])} `);
}
