import { NotFound, Refused, Unavailable } from "../../platform/errors.ts";
import { isRecord } from "../../platform/record.ts";
import { follow, type News } from "../client/follow.ts";
import { renewSession } from "../client/session.ts";
import type { SseMessage } from "../client/sse.ts";
import { UsageError } from "../errors.ts";
import type { Io } from "../io.ts";
import { canDraw, type Display, statusLine, writeSlowly } from "../screen.ts";
import { parseWhen } from "../when.ts";
import { IncidentClient, type IncidentDetail, type Status, type TimelineEvent } from "./incident.ts";
import { endingText, eventsText, statusText, terminalLines, type WatchedEvent } from "./watch_text.ts";

export interface WatchOptions {
  id?: string;
  since?: string;
  /** "stable" or "closed" */
  until?: string;
  json?: boolean;
}

/** Events that are shown at first, unless --since says otherwise. */
export const firstEvents = 10;
/** Of those since a time. */
const mostEvents = 10_000;

/** `svc incident watch` */
export async function watchCommand(options: WatchOptions, io: Io): Promise<void> {
  const { id, until } = options;
  const since = options.since === undefined ? undefined : parseWhen("--since", options.since, io.clock.now());
  if (id === undefined) {
    if (until !== undefined) throw new UsageError("--until needs an incident: svc incident watch ID");
    const { watchBoard } = await import("./watch_board.ts");
    return watchBoard(io, options, since);
  }
  let watch: IncidentWatch | undefined;
  try {
    await IncidentClient.within(io, async (client) => {
      const incident = await client.resolve(id);
      if (options.since !== undefined) client.checkClock("--since", options.since);
      watch = new IncidentWatch(io, client, incident, options);
      await watch.run(since);
    });
  } finally {
    // Ctrl-C does not wait for the work, so this also runs while it goes on.
    watch?.close();
  }
}

/** What is watched, with a display if the terminal can draw. */
export abstract class Watch {
  protected display: Display | undefined;
  #connection: string | undefined;
  #isLost = false;
  #ticker: NodeJS.Timeout | undefined;

  constructor(
    readonly io: Io,
    readonly client: IncidentClient,
    readonly options: WatchOptions,
  ) {}

  /** Opens the display, unless lines of text are wanted. */
  protected draw(open: () => Display): void {
    const { io, client, options } = this;
    if (options.json || !canDraw(io.stdout, io.env)) {
      io.endWithReader();
      return;
    }
    client.isDrawing = true;
    this.display = open();
    this.#ticker = setInterval(() => this.display?.refresh(), 1000);
  }

  /** A text that the reader must not miss. */
  protected notice(): string | undefined {
    return this.#connection ?? endingNotice(this.client, this.io);
  }

  /** Says when the connection is lost, and when it is back. @returns whether it is back */
  protected hear(news: News): boolean {
    if (news.type === "message") return false;
    const wasLost = this.#isLost;
    this.#isLost = news.type === "lost";
    if (wasLost === this.#isLost) return false;
    this.#connection = this.#isLost ? "reconnecting" : undefined;
    const line = news.type === "lost" ? `${news.reason}; reconnecting` : "connected again";
    if (this.display) this.display.refresh();
    else this.io.stderr.write(`svc: ${line}\n`);
    return wasLost;
  }

  close(): void {
    clearInterval(this.#ticker);
    this.display?.close();
  }
}

/** Events of one incident as they happen, and its state in a line below them if the terminal can draw. */
class IncidentWatch extends Watch {
  #incident: IncidentDetail;
  #refetching: Promise<void> | undefined;
  #isStale = false;

  constructor(io: Io, client: IncidentClient, incident: IncidentDetail, options: WatchOptions) {
    super(io, client, options);
    this.#incident = incident;
    this.draw(() => statusLine(io, (width) => statusText(this.#incident, io, width, this.notice())));
  }

  async run(since: Date | undefined): Promise<void> {
    const { io, client, options } = this;
    const path = `/incidents/${this.#incident.id}`;
    const { events, last, isCut } = await readEvents(client, this.#incident.id, since);
    if (isCut) this.#tell(`Older events are left out: svc incident view ${this.#incident.name} --timeline`);
    await this.#show(events);
    // After the events: what happens from now on is in the stream.
    await this.#refetch();
    if (isReached(this.#incident.status, options.until)) {
      return this.#show(await client.list<TimelineEvent>(`${path}/events/`, { after: String(last) }));
    }
    const { session, signal } = client;
    const stream = follow({ io, session, signal, path: `${path}/stream`, after: String(last) });
    try {
      for await (const news of stream) {
        if (this.hear(news)) void this.#refetch();
        if (news.type === "message" && (await this.#receive(news.message))) return;
      }
    } catch (error) {
      throw error instanceof NotFound ? this.#gone(error) : error;
    }
  }

  /** Shows an event. @returns whether the incident now has the status that the user waits for */
  async #receive(message: SseMessage): Promise<boolean> {
    const event = eventOf(message, this.client);
    // Compared with the previous id, not the last event shown: after a restored backup, ids continue at a smaller number.
    if (event === undefined || event.id <= Number(message.previousId)) return false;
    if (/^(incident|role|participant)\./.test(event.kind)) void this.#refetch();
    await this.#show([event]);
    const { until } = this.options;
    const status = statusAfter[event.kind];
    if (status === undefined || !isReached(status, until)) return false;
    await this.#refetching;
    return true;
  }

  async #show(events: readonly TimelineEvent[]): Promise<void> {
    const { io, options } = this;
    const { name: incident } = this.#incident;
    const watched = events.map((event): WatchedEvent => ({ ...event, incident }));
    if (this.display) this.display.print(watched.flatMap((event) => terminalLines(event, io)));
    else await writeSlowly(io.stdout, eventsText(watched, io, options.json === true));
  }

  #tell(line: string): void {
    if (this.display) this.display.print([line]);
    else this.io.stderr.write(`${line}\n`);
  }

  /** Reads the state of the incident again, once at a time. */
  #refetch(): Promise<void> {
    this.#isStale = true;
    this.#refetching ??= (async () => {
      while (this.#isStale) {
        this.#isStale = false;
        // The stream says whether the incident, or the server, is gone.
        const now = await this.client.get(String(this.#incident.id)).catch(() => undefined);
        if (now) this.#incident = now;
        this.display?.refresh();
      }
    })().finally(() => {
      this.#refetching = undefined;
    });
    return this.#refetching;
  }

  #gone(error: NotFound): NotFound {
    return new NotFound(`${this.#incident.name} is no longer visible to you`, { cause: error });
  }
}

/** Says that the sign-in ends soon, until the user has signed in again. */
function endingNotice({ session }: IncidentClient, io: Io): string | undefined {
  const text = endingText(session, io);
  // For the next connection; if the file cannot be read now, the next second will do.
  if (text !== undefined && session.source !== "keychain") renewSession(session, io).catch(() => {});
  return text;
}

const statusAfter: Readonly<Record<string, Status | undefined>> = {
  "incident.reported": "Active",
  "incident.reopened": "Active",
  "incident.stable": "Stable",
  "incident.closed": "Closed",
};

/** A closed incident is stable, too. */
function isReached(status: Status, until: WatchOptions["until"]): boolean {
  return until !== undefined && (status === "Closed" || (until === "stable" && status === "Stable"));
}

/** The event in a message of a stream; undefined for what this release does not know. @throws Refused */
function eventOf({ event, data }: SseMessage, { session }: IncidentClient): TimelineEvent | undefined {
  if (event !== "event") return undefined;
  const value = parseObject(data);
  if (value === undefined || !isEvent(value))
    throw new Refused(`${session.server.base} sent an invalid event`);
  return value;
}

export function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isEvent(value: object): value is TimelineEvent {
  const { id, at, actor, kind, description } = value as Record<string, unknown>;
  const texts = [at, actor, kind, description];
  return Number.isSafeInteger(id) && texts.every((text) => typeof text === "string");
}

/**
 * The newest events of an incident, oldest first: ten, or those since a time, up to ten thousand. `last` is the id after
 * which the stream continues, and `isCut` whether there are more since that time.
 */
export async function readEvents(
  client: IncidentClient,
  id: number,
  since: Date | undefined,
): Promise<{ events: TimelineEvent[]; last: number; isCut: boolean }> {
  const path = `/incidents/${id}/events/`;
  // By id, since a backdated note is not among the newest by time.
  const most = since === undefined ? firstEvents : mostEvents;
  const newest: TimelineEvent[] = [];
  const isOlder = (event: TimelineEvent) => since !== undefined && writtenAt(event) < since;
  for await (const page of client.pages<TimelineEvent>(path, { sort: "-id" }, most)) {
    if (!page.every(isEvent)) throw new Unavailable(`${client.session.server.base} sent an invalid event`);
    newest.push(...page);
    // What was written before that time happened before it, too.
    if (page.some(isOlder)) break;
  }
  const isCut = since !== undefined && newest.length >= most && !newest.some(isOlder);
  const last = Math.max(0, ...newest.map((event) => event.id));
  const shown = since === undefined ? newest : newest.filter(({ at }) => new Date(at) >= since);
  return { events: shown.sort((a, b) => a.id - b.id), last, isCut };
}

/** A backdated note says when it was written. */
function writtenAt({ at, data }: TimelineEvent): Date {
  const { noted_at: noted } = (data ?? {}) as { noted_at?: unknown };
  return new Date(typeof noted === "string" ? noted : at);
}
