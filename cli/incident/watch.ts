import { folded } from "../../core/incident/timeline/fold.ts";
import { type Entry, notedAt } from "../../core/incident/words.ts";
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

/** Lines that are shown at first, unless --since says otherwise. */
export const firstEvents = 10;
/** Of so many events, because a line may have several. */
const readAtFirst = 100;
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
  #isWarned = false;
  #ticker: NodeJS.Timeout | undefined;
  /** The event that was shown last. */
  #last: WatchedEvent | undefined;
  /** What the server did after that. It often does more within moments, which then gets no line of its own. */
  #held: WatchedEvent[] = [];
  #flushing: NodeJS.Timeout | undefined;

  constructor(
    readonly io: Io,
    readonly client: IncidentClient,
    readonly options: WatchOptions,
    readonly withIncident = false,
  ) {}

  /** Opens the display, unless lines of text are wanted. */
  protected draw(open: () => Display): void {
    const { io, client, options } = this;
    this.#ticker = setInterval(() => this.#tick(), 1000);
    if (options.json || !canDraw(io.stdout, io.env)) {
      io.endWithReader();
      return;
    }
    client.isDrawing = true;
    this.display = open();
  }

  #tick(): void {
    const ending = endingNotice(this.client, this.io);
    if (this.display) this.display.refresh();
    else if (ending !== undefined && !this.#isWarned && !this.#isLost)
      this.io.stderr.write(`svc: ${ending} in another terminal\n`);
    this.#isWarned = ending !== undefined;
  }

  /** A text that the reader must not miss. */
  protected notice(): string | undefined {
    return this.#connection ?? endingNotice(this.client, this.io);
  }

  /** Says when the connection is lost, and when it is back. @returns whether it is back */
  protected noteConnection(news: News): boolean {
    if (news.type === "message") return false;
    const wasLost = this.#isLost;
    this.#isLost = news.type !== "open";
    if (wasLost === this.#isLost && news.type !== "expired") return false;
    this.#connection = { open: undefined, lost: "reconnecting", expired: "signed out: svc login" }[news.type];
    const line = {
      open: "connected again",
      lost: `${"reason" in news ? news.reason : ""}; reconnecting`,
      expired: "the sign-in has expired; to go on, sign in again: svc login in another terminal",
    }[news.type];
    if (this.display) this.display.refresh();
    else this.io.stderr.write(`svc: ${line}\n`);
    return wasLost;
  }

  /** Shows events. What the server does by itself is shown a moment later, in one line. */
  protected async print(events: readonly WatchedEvent[]): Promise<void> {
    if (this.options.json) return this.write(events.map((event) => ({ event, more: [] })));
    const entries = folded([...this.#held, ...events], this.#last);
    const open = entries.at(-1)?.isMachinery ? entries.pop() : undefined;
    this.#held = open ? [open.event, ...open.more] : [];
    const shown = entries.at(-1);
    if (shown) this.#last = shown.more.at(-1) ?? shown.event;
    if (this.#held.length > 0) this.#flushing ??= setTimeout(() => void this.flush(), foldMilliseconds);
    if (entries.length > 0) await this.write(entries);
  }

  /** Shows what is held back. */
  protected async flush(): Promise<void> {
    clearTimeout(this.#flushing);
    this.#flushing = undefined;
    const entries = folded(this.#held);
    this.#last = this.#held.at(-1) ?? this.#last;
    this.#held = [];
    if (entries.length > 0) await this.write(entries);
  }

  protected async write(entries: readonly Entry<WatchedEvent>[]): Promise<void> {
    const { io, options, withIncident } = this;
    if (this.display) this.display.print(entries.flatMap((entry) => terminalLines(entry, io, withIncident)));
    else await writeSlowly(io.stdout, eventsText(entries, io, options.json === true, withIncident));
  }

  close(): void {
    clearInterval(this.#ticker);
    void this.flush();
    this.display?.close();
  }
}

const foldMilliseconds = 1000;

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
    const { events, last, isCut } = await readEvents(client, this.#incident.id, since, readAtFirst);
    if (isCut) this.#tell(`Older events are left out: svc incident view ${this.#incident.name} --timeline`);
    const first = newestLines(
      events.map((event) => this.#watched(event)),
      options,
    );
    await this.print(first);
    await this.flush();
    // After the events: what happens from now on is in the stream.
    await this.#refetch();
    if (isReached(this.#incident.status, options.until)) {
      const missed = await client.list<TimelineEvent>(`${path}/events/`, { after: String(last) });
      return this.print(missed.map((event) => this.#watched(event)));
    }
    const { session, signal } = client;
    const stream = follow({
      io,
      session,
      signal,
      path: `${path}/stream`,
      after: String(last),
    });
    try {
      for await (const news of stream) {
        if (this.noteConnection(news)) void this.#refetch();
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
    await this.print([this.#watched(event)]);
    const { until } = this.options;
    const status = statusAfter[event.kind];
    if (status === undefined || !isReached(status, until)) return false;
    await this.#refetching;
    return true;
  }

  #watched(event: TimelineEvent): WatchedEvent {
    return { ...event, incident: this.#incident.name };
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

/** The events of the last lines, unless --since says where to begin. */
export function newestLines(
  events: readonly WatchedEvent[],
  { since, json }: WatchOptions,
): readonly WatchedEvent[] {
  if (since !== undefined) return events;
  if (json) return events.slice(-firstEvents);
  return folded(events)
    .slice(-firstEvents)
    .flatMap(({ event, more }) => [event, ...more]);
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
 * The newest events of an incident, oldest first: `atFirst`, or those since a time, up to ten thousand. `last` is the id after
 * which the stream continues, and `isCut` whether there are more since that time.
 */
export async function readEvents(
  client: IncidentClient,
  id: number,
  since: Date | undefined,
  atFirst = firstEvents,
): Promise<{ events: TimelineEvent[]; last: number; isCut: boolean }> {
  const path = `/incidents/${id}/events/`;
  // By id, since a backdated note is not among the newest by time.
  const most = since === undefined ? atFirst : mostEvents;
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
function writtenAt(event: TimelineEvent): Date {
  return new Date(notedAt(event) ?? event.at);
}
