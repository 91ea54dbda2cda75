import pLimit from "p-limit";
import { folded } from "../../core/incident/timeline/fold.ts";
import { Forbidden, NotFound, Unauthenticated } from "../../platform/errors.ts";
import type { Query } from "../client/api_client.ts";
import { follow } from "../client/follow.ts";
import { mayPass } from "../client/request.ts";
import type { Io } from "../io.ts";
import { fullScreen } from "../screen.ts";
import { cut } from "../table.ts";
import {
  type Incident,
  IncidentClient,
  type IncidentDetail,
  ifUnknown,
  type Named,
  type TimelineEvent,
} from "./incident.ts";
import { incidentTable } from "./incident_table.ts";
import { stylesOf } from "./text.ts";
import { firstEvents, newestLines, parseObject, readEvents, Watch, type WatchOptions } from "./watch.ts";
import { shortLine, type WatchedEvent } from "./watch_text.ts";

/** Incidents on the board. `svc incident list` shows the others. */
const mostIncidents = 100;
/** Incidents that stay on the board after they are closed. */
const mostClosed = 5;
const keptEvents = 200;
/** Requests at a time. */
const parallel = 6;
const retryMilliseconds = 1000;

/** `svc incident watch` without ID */
export async function watchBoard(io: Io, options: WatchOptions, since: Date | undefined): Promise<void> {
  const quit = Promise.withResolvers<void>();
  let board: Board | undefined;
  try {
    await IncidentClient.within(io, async (client) => {
      board = new Board(io, client, options, since, quit.resolve);
      await Promise.race([board.run(), quit.promise]);
    });
  } finally {
    // Also after Ctrl-C, which does not wait for the work.
    board?.close();
  }
}

class Board extends Watch {
  readonly #incidents = new Map<number, Incident>();
  /** By incident: the id of the last event that was shown. */
  readonly #last = new Map<number, number>();
  #events: WatchedEvent[] = [];
  /** By priority; the most urgent one is the highest. */
  #ranks = new Map<number, number>();
  #isLoaded = false;
  /** There are more open incidents than the board shows. */
  #isCut = false;
  #stopKeys: (() => void) | undefined;
  readonly #changed = new Set<number>();
  #reading: Promise<void> | undefined;
  readonly #reads = new Map<number, Promise<unknown>>();
  #failed = Promise.withResolvers<never>();

  constructor(
    io: Io,
    client: IncidentClient,
    options: WatchOptions,
    readonly since: Date | undefined,
    leave: () => void,
  ) {
    super(io, client, options, true);
    this.#failed.promise.catch(() => {});
    this.draw(() => {
      const display = fullScreen(
        io,
        (columns, rows) => this.#screen(columns, rows),
        () => (this.#isLoaded ? this.#lines(io.stdout.columns || 80) : []),
      );
      this.#stopKeys = io.onKey((key) => {
        if (key === "q" || key === "Q") leave();
      });
      return display;
    });
    this.display?.refresh();
  }

  async run(): Promise<void> {
    const { session, signal } = this.client;
    const stream = follow({ io: this.io, session, signal, path: "/incidents/stream" });
    for (;;) {
      const { done, value: news } = await Promise.race([stream.next(), this.#failed.promise]);
      if (done) return;
      this.noteConnection(news);
      // The stream has no earlier changes.
      if (news.type === "open") await this.#untilDone(() => this.#load());
      else if (news.type === "message") this.#note(news.message.data);
    }
  }

  override close(): void {
    this.#stopKeys?.();
    super.close();
  }

  /** Reads the whole board. */
  async #load(): Promise<void> {
    const { client, options, since } = this;
    const queries: Query[] = [{ status: "Active,Stable" }];
    if (since !== undefined) queries.push({ reported_after: since.toISOString() });
    const [priorities, ...lists] = await Promise.all([
      client.list<Named & { rank: number }>("/incident_priorities/").catch(ifUnknown([])),
      ...queries.map((query) => client.list<Incident>("/incidents/", query, mostIncidents)),
    ]);
    this.#ranks = new Map(priorities.map(({ id, rank }) => [id, rank]));
    if (!this.#isLoaded && options.since !== undefined) client.checkClock("--since", options.since);
    const known = [...this.#incidents.keys()];
    const listed = lists.flat();
    this.#isCut = lists[0]!.length >= mostIncidents;
    for (const incident of listed) this.#put(incident);
    const isFirst = !this.#isLoaded;
    const ids = new Set([...listed.map(({ id }) => id), ...known]);
    if (isFirst) {
      await pLimit(parallel).map(ids, (id) => this.#begin(id));
      this.#events.sort((a, b) => a.at.localeCompare(b.at) || a.id - b.id);
      const begun = newestLines(this.#events, options);
      this.#events = [];
      this.#isLoaded = true;
      await this.#show(begun);
      await this.flush();
    } else await pLimit(parallel).map(ids, (id) => this.#read(id));
    this.display?.refresh();
  }

  /** Reads the events of an incident that is open when the board opens. */
  async #begin(id: number): Promise<void> {
    const [read, detail] = await Promise.all([
      readEvents(this.client, id, this.since),
      this.client.call<IncidentDetail>("GET", `/incidents/${id}`),
    ]).catch(ifGone);
    if (read === undefined || detail === undefined) return void this.#incidents.delete(id);
    this.#put(detail);
    this.#last.set(id, read.last);
    this.#events.push(...read.events.map((event) => ({ ...event, incident: detail.name })));
  }

  #note(data: string): void {
    const id = parseObject(data)?.id;
    if (typeof id !== "number" || !Number.isSafeInteger(id)) return;
    this.#changed.add(id);
    this.#reading ??= this.#readChanged()
      .catch((error: unknown) => this.#failed.reject(error))
      .finally(() => {
        this.#reading = undefined;
      });
  }

  async #readChanged(): Promise<void> {
    while (this.#changed.size > 0) {
      const ids = [...this.#changed];
      this.#changed.clear();
      await this.#untilDone(() => pLimit(parallel).map(ids, (id) => this.#read(id)));
      this.display?.refresh();
    }
  }

  /** Repeats work that fails because the server cannot be reached. The stream decides when to give up. */
  async #untilDone(work: () => Promise<unknown>): Promise<void> {
    for (;;) {
      try {
        await work();
        return;
      } catch (error) {
        // The stream ends, too, and everything is read again after a new sign-in.
        if (this.#isLoaded && error instanceof Unauthenticated) return;
        if (!this.#isLoaded || !mayPass(error)) throw error;
        await this.io.sleep(retryMilliseconds, this.client.signal);
      }
    }
  }

  /** Reads one incident again, and its new events; once at a time, so that no event is shown twice. */
  #read(id: number): Promise<void> {
    const before = this.#reads.get(id) ?? Promise.resolve();
    const read = before.then(() => this.#readNow(id));
    // The caller of that read handles its failure.
    const settled = read
      .catch(() => {})
      .finally(() => this.#reads.get(id) === settled && this.#reads.delete(id));
    this.#reads.set(id, settled);
    return read;
  }

  async #readNow(id: number): Promise<void> {
    const { client } = this;
    let last = this.#last.get(id);
    const path = `/incidents/${id}/events/`;
    const [detail, newest = []] = await Promise.all([
      client.call<IncidentDetail>("GET", `/incidents/${id}`),
      client.list<TimelineEvent>(path, { sort: "-id" }, firstEvents),
    ]).catch(ifGone);
    if (detail === undefined) {
      this.#incidents.delete(id);
      return;
    }
    const top = Math.max(0, ...newest.map((event) => event.id));
    if (last !== undefined && top < last) {
      // A restored backup: what follows gets smaller ids, and an older version is not an answer that was overtaken.
      last = top;
      this.#incidents.delete(id);
    }
    this.#put(detail);
    let fresh = newest.filter((event) => event.id > (last ?? 0));
    if (last !== undefined && fresh.length === firstEvents)
      fresh = await client.list<TimelineEvent>(path, { after: String(last) }, Number.POSITIVE_INFINITY);
    // Of an incident that was not on the board, such as a closed one, only what happened now is news.
    const isNew = newest.some(({ kind }) => kind === "incident.reported");
    if (last === undefined && !isNew) fresh = fresh.sort((a, b) => b.id - a.id).slice(0, 1);
    fresh.sort((a, b) => a.id - b.id);
    // The second request may have found events that the first did not.
    this.#last.set(id, Math.max(last ?? 0, top, fresh.at(-1)?.id ?? 0));
    await this.#show(fresh.map((event) => ({ ...event, incident: detail.name })));
  }

  #put(incident: Incident): void {
    const before = this.#incidents.get(incident.id);
    // An answer that was overtaken by a newer one.
    if (before && before.version > incident.version) return;
    if (before === undefined && incident.status === "Closed" && this.since === undefined) return;
    this.#incidents.set(incident.id, { ...before, ...incident });
    if (this.since !== undefined) return;
    const closed = [...this.#incidents.values()].filter(({ status }) => status === "Closed");
    for (const { id } of closed.sort(byClosing).slice(mostClosed)) this.#incidents.delete(id);
  }

  async #show(events: readonly WatchedEvent[]): Promise<void> {
    if (this.display) {
      this.#events = [...this.#events, ...events].slice(-keptEvents);
      this.display.refresh();
    } else await this.print(events);
  }

  #sorted(): Incident[] {
    const order = ["Active", "Stable", "Closed"];
    const rankOf = ({ incident_priority_id: id }: Incident) => this.#ranks.get(id) ?? 0;
    return [...this.#incidents.values()].sort(
      (a, b) =>
        order.indexOf(a.status) - order.indexOf(b.status) ||
        rankOf(b) - rankOf(a) ||
        b.reported_at.localeCompare(a.reported_at) ||
        b.id - a.id,
    );
  }

  /** The summary, the incidents and the events. */
  #lines(columns: number, mostRows = Number.POSITIVE_INFINITY, mostEvents = firstEvents): string[] {
    const { io } = this;
    const incidents = this.#sorted();
    const shown = incidents.slice(0, incidents.length > mostRows ? Math.max(1, mostRows - 1) : mostRows);
    const rest = incidents.length - shown.length;
    const rows = shown.length === 0 ? [] : incidentTable(shown, io).trimEnd().split("\n");
    const events = mostEvents > 0 ? folded(this.#events).slice(-mostEvents) : [];
    return [
      ...(rows.length > 0 ? rows : ["No open incidents."]),
      ...(rest > 0 ? [cut(`… and ${rest} more: svc incident list`, columns)] : []),
      ...(events.length > 0 ? ["", ...events.map((event) => shortLine(event, io, columns))] : []),
    ];
  }

  #screen(columns: number, rows: number): string[] {
    const dim = stylesOf(this.io);
    const open = [...this.#incidents.values()].filter(({ status }) => status !== "Closed").length;
    const count = `${open}${this.#isCut ? "+" : ""} open incident${open === 1 ? "" : "s"}`;
    const state = this.notice() ?? (this.#isLoaded ? "live" : "loading");
    const title = cut([count, state, "q to leave"].join(" · "), columns);
    if (!this.#isLoaded) return [dim(title, "dim")];
    // The title, the header, an empty line, and a third of the rest for events.
    const free = Math.max(1, rows - 3);
    const events = Math.min(
      folded(this.#events).length,
      Math.max(Math.floor(free / 3), free - this.#incidents.size - 1),
    );
    const lines = this.#lines(columns, Math.max(1, free - Math.max(0, events)), events);
    // In two or three rows, an incident is worth more than the header.
    if (rows < 4 && this.#incidents.size > 0) lines.shift();
    return [dim(title, "dim"), ...lines];
  }
}

function byClosing(a: Incident, b: Incident): number {
  return (b.closed_at ?? "").localeCompare(a.closed_at ?? "");
}

/** An incident that the user may no longer see is no longer on the board. */
function ifGone(error: unknown): [undefined, undefined] {
  if (error instanceof NotFound || error instanceof Forbidden) return [undefined, undefined];
  throw error;
}
