import type { Meter } from "@opentelemetry/api";
import { currentGroups } from "../../core/auth/certificate/certificate.ts";
import { type Actor, type Context, tokenOf } from "../../core/context.ts";
import { currentSessions, endedTokens, incidentStates, readersOf } from "../../core/incident/stream/read.ts";
import { eventChannel } from "../../core/incident/timeline/event.ts";
import type { Listener } from "../../drizzle/connection/listener.ts";
import { Board } from "./board.ts";
import { Channel } from "./channel.ts";
import { Connection, type EndReason, heartbeat, retryAfter } from "./connection.ts";

/** A stream of one incident, or of all. */
type StreamKind = "incident" | "all";

/** The number of open streams, and of ended ones by reason. */
export class StreamMetrics {
  readonly #open;
  readonly #ended;

  constructor(meter: Meter) {
    this.#open = meter.createUpDownCounter("svc_streams", { description: "Open streams of events" });
    this.#ended = meter.createCounter("svc_streams_ended_total", {
      description: "Streams of events that have ended, and why",
    });
  }

  begun(of: StreamKind): void {
    this.#open.add(1, { of });
  }

  ended(of: StreamKind, reason: EndReason): void {
    this.#open.add(-1, { of });
    this.#ended.add(1, { of, reason });
  }
}

const heartbeatMilliseconds = 15_000;
/** How often everything is read again, in case a hint was lost or access ended without one. */
const recheckMilliseconds = 5000;
const tickMilliseconds = 1000;
/** How long clients wait before they reconnect, if the connection is lost. */
const retryMilliseconds = 1000;
/** The clients of a stopping server reconnect over this time: per client, and at most. */
const spreadMilliseconds = 1;
const longestSpreadMilliseconds = 10_000;

/** All streams of this process. */
export class IncidentStreams {
  readonly #channels = new Map<number, Channel>();
  readonly #connections = new Set<Connection>();
  readonly #board: Board;
  #timer: NodeJS.Timeout | undefined;
  #rechecking = false;
  #rechecked = performance.now();
  #closed = false;
  readonly #metrics: StreamMetrics | undefined;

  constructor(private readonly context: Pick<Context, "db" | "log" | "clock" | "config" | "telemetry">) {
    this.#board = new Board(context);
    const meter = context.telemetry?.meter;
    this.#metrics = meter && new StreamMetrics(meter);
  }

  /** Opens a stream of an incident that the actor may read, from `cursor` on. `onEnd` is called once, however it ends. */
  openIncident(
    actor: Actor,
    incidentId: number,
    cursor: number,
    onEnd: () => void,
  ): ReadableStream<Uint8Array> {
    const channel = this.#channels.get(incidentId) ?? new Channel(this.context, incidentId);
    this.#channels.set(incidentId, channel);
    const connection = this.#open(actor, "incident", () => {
      onEnd();
      channel.remove(connection);
      if (channel.isEmpty && this.#channels.get(incidentId) === channel) this.#channels.delete(incidentId);
    });
    connection.send(retryAfter(retryMilliseconds, cursor));
    channel.add(connection, cursor);
    if (this.#closed) this.#sendAway(connection);
    return connection.body;
  }

  /** Opens a stream of changes to all incidents that the actor may read. */
  async openBoard(actor: Actor, onEnd: () => void): Promise<ReadableStream<Uint8Array>> {
    await this.#board.prepare();
    const connection = this.#open(actor, "all", () => {
      onEnd();
      this.#board.remove(connection);
    });
    connection.send(retryAfter(retryMilliseconds));
    this.#board.add(connection);
    if (this.#closed) this.#sendAway(connection);
    return connection.body;
  }

  /** Follows the hints that PostgreSQL passes on: pairs of an incident and its newest event. */
  subscribeTo(listener: Pick<Listener, "subscribe">): void {
    const hinted = (hint: string) => {
      const numbers = hint.split(" ").map(Number);
      for (let i = 0; i < numbers.length; i += 2) this.#hint(numbers[i]!, numbers[i + 1]!);
    };
    listener.subscribe({ channels: { [eventChannel]: hinted }, listening: () => this.recheck() });
  }

  #hint(incidentId: number, eventId: number): void {
    const channel = this.#channels.get(incidentId);
    if (channel && eventId > channel.tail) void channel.wake();
    this.#board.hint(incidentId, eventId);
  }

  /** Reads everything again, because hints may have been lost. */
  recheck(): void {
    this.#rechecked = performance.now();
    if (this.#rechecking || this.#connections.size === 0) return;
    this.#rechecking = true;
    this.#recheckAll()
      .catch((error: unknown) => this.context.log.debug({ err: error }, "could not check the open streams"))
      .finally(() => {
        this.#rechecking = false;
      });
  }

  /** Ends all streams, because this server stops. Their clients continue at another one, not all at once. */
  close(): void {
    this.#closed = true;
    for (const connection of [...this.#connections]) this.#sendAway(connection);
  }

  /** A certificate has the groups of its user's latest sign-in, which may be a later one. */
  async #readGroups(): Promise<void> {
    const { db, config } = this.context;
    const byCertificate = [...this.#connections].filter(({ actor }) => actor.certificate);
    const signIns = new Set(byCertificate.map(({ actor }) => tokenOf(actor)));
    const current = await currentGroups(db, [...signIns]);
    for (const connection of byCertificate) {
      const groups = current.get(tokenOf(connection.actor)) ?? [];
      connection.actor = { ...connection.actor, groups, admin: groups.includes(config.adminGroup) };
    }
  }

  /** A browser's session may have ended, belong to somebody else, or have other groups. */
  async #readSessions(): Promise<void> {
    const { db, clock, config } = this.context;
    const bySession = [...this.#connections].filter(({ actor }) => actor.sessionKey);
    const keys = new Set(bySession.map(({ actor }) => actor.sessionKey!));
    const current = await currentSessions(db, [...keys], clock.now());
    for (const connection of bySession) {
      const found = current.get(connection.actor.sessionKey!);
      if (found?.user !== connection.actor.user) connection.close("signed_out");
      else {
        const { groups } = found;
        connection.actor = { ...connection.actor, groups, admin: groups.includes(config.adminGroup) };
      }
    }
  }

  #open(actor: Actor, of: StreamKind, onEnd: () => void): Connection {
    this.#metrics?.begun(of);
    const connection = new Connection(actor, (reason) => {
      this.#metrics?.ended(of, reason);
      this.#connections.delete(connection);
      onEnd();
      if (this.#connections.size === 0) this.#stopTicking();
    });
    this.#connections.add(connection);
    this.#timer ??= setInterval(() => this.#tick(), tickMilliseconds);
    return connection;
  }

  #sendAway(connection: Connection): void {
    const spread = Math.min(this.#connections.size * spreadMilliseconds, longestSpreadMilliseconds);
    const wait = retryMilliseconds * (0.5 + Math.random() / 2) + Math.random() * spread;
    connection.close("stopping", retryAfter(Math.round(wait)));
  }

  #stopTicking(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #tick(): void {
    const now = performance.now();
    const time = this.context.clock.now();
    for (const connection of [...this.#connections]) {
      if (connection.actor.expiresAt <= time) connection.close("signed_out");
      else if (now - connection.lastSent >= heartbeatMilliseconds) connection.send(heartbeat);
    }
    if (now - this.#rechecked >= recheckMilliseconds) this.recheck();
  }

  async #recheckAll(): Promise<void> {
    const { db } = this.context;
    const tokens = new Set([...this.#connections].flatMap(({ actor }) => actor.tokenId ?? []));
    const ended = await endedTokens(db, [...tokens]);
    for (const connection of [...this.#connections])
      if (connection.actor.tokenId && ended.has(connection.actor.tokenId)) connection.close("signed_out");
    await this.#readGroups();
    await this.#readSessions();
    await this.#board.recheck();
    const channels = [...this.#channels.values()];
    const states = await incidentStates(
      db,
      channels.map(({ incidentId }) => incidentId),
    );
    const restricted = states.filter(({ visibility }) => visibility !== "Open").map(({ id }) => id);
    const readers = await readersOf(db, restricted);
    const byId = new Map(states.map((state) => [state.id, state]));
    for (const channel of channels) {
      const state = byId.get(channel.incidentId);
      if (!state) channel.end();
      else if (state.tail !== channel.tail) void channel.wake();
      const allowed = readers.get(channel.incidentId);
      if (allowed) channel.keepOnly(allowed);
    }
  }
}
