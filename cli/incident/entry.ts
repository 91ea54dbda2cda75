import { isSaid } from "../../core/incident/timeline/fold.ts";
import { entryName, hasEarlierText, removedText, shortName } from "../../core/incident/words.ts";
import { InvalidInput, NotFound } from "../../platform/errors.ts";
import { UsageError } from "../errors.ts";
import type { Io } from "../io.ts";
import { printable, printableLines } from "../text.ts";
import type { IncidentClient, IncidentDetail, StatusReport, TimelineEvent } from "./incident.ts";
import { reportText } from "./report_parts.ts";
import { whenText } from "./text.ts";

// What somebody said on the timeline, which they may correct: a note, a report or a message.

/** An entry with its text, that of a report under its headings. */
export interface EntryWithText {
  event: TimelineEvent;
  version: number;
  text: string;
  isReport: boolean;
}

export const entryArg = {
  entry: {
    type: "positional",
    metavar: "ENTRY",
    description: "The note, report or message: e1042, as svc incident view shows it",
  },
} as const;

/** The id in `e1042`, `E1042` or `1042`. @throws UsageError */
export function parseEntry(text: string): number {
  const [, id] = /^[eE]?([1-9]\d{0,14})$/.exec(text.trim()) ?? [];
  if (id !== undefined) return Number(id);
  throw new UsageError(
    `"${printable(text, 80)}" is not an entry, such as e1042 (svc incident view shows them); name its incident with -i`,
  );
}

/** The path of the API for an entry. */
export function entryPath({ id }: { id: number }, entry: number): string {
  return `/incidents/${id}/events/${entry}`;
}

/**
 * @param orEdit also accepts the edit of a description or resolution, which has the earlier text
 * @throws NotFound for an entry of another incident, and for an event that nobody said
 */
export async function readEntry(
  client: IncidentClient,
  incident: Pick<IncidentDetail, "id" | "name">,
  id: number,
  { orEdit = false } = {},
): Promise<EntryWithText> {
  const event = await client.call<TimelineEvent>("GET", entryPath(incident, id)).catch((error: unknown) => {
    if (!(error instanceof NotFound)) throw error;
    throw new NotFound(
      `${entryName(id)} is not an entry of ${incident.name}: name its incident with -i, or look at svc incident view ${incident.name}`,
      { cause: error },
    );
  });
  if (!isSaid(event) && !(orEdit && hasEarlierText(event)))
    throw new NotFound(`${entryName(id)} of ${incident.name} is not a note, a report or a message`);
  if (event.kind !== "report.written")
    return { event, version: event.version, text: event.description, isReport: false };
  const path = `/incidents/${incident.id}/reports/${String(event.data.report_id)}`;
  const report = await client.call<StatusReport>("GET", path);
  // The version of this text: the event may have been read before another correction.
  return { event, version: report.version, text: reportText(report), isReport: true };
}

/** What the entry is, for a question: `e1042 of INC-44, by carol 5m ago: The release of 11:40 ...` */
export function aboutEntry({ event, text }: EntryWithText, { name }: { name: string }, io: Io): string {
  const when = (instant: string) => whenText(instant, io);
  const shown = removedText(event, when) ?? printable(printableLines(text).join(" "), 80);
  return `${entryName(event.id)} of ${name}, by ${shortName(event.actor)} ${when(event.at)}: ${shown}`;
}

/** @throws InvalidInput for a text that is no more */
export function refuseRemoved({ event }: EntryWithText, io: Io): void {
  const removed = removedText(event, (instant) => whenText(instant, io));
  if (removed !== undefined)
    throw new InvalidInput("entry", `${entryName(event.id)} has no text any more: ${removed}`);
}
