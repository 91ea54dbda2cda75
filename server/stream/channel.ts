import type { Context } from "../../core/context.ts";
import type { Event } from "../../core/incident/event/list.ts";
import { eventsAtOnce, readersOf, readSlice } from "../../core/incident/stream/read.ts";
import { type Connection, encode, encodeEvent, longestBacklog } from "./connection.ts";

/** Time between two reads of one incident, so that many events in a row cost few reads. */
const gatherMilliseconds = 40;

/** One client of an incident's stream. */
interface Follower {
  connection: Connection;
  /** The id of the last event sent to it. */
  cursor: number;
  /** Whether it gets what the channel reads. Until then, it reads on its own. */
  isLive: boolean;
}

/**
 * The followers of one incident in this process. Each new event is read and encoded once, regardless of their number;
 * only what a follower missed is read for it alone.
 */
export class Channel {
  readonly #followers = new Map<Connection, Follower>();
  /** The id of the last event sent to live followers. */
  #tail = 0;
  /** Counts the hints, so that the first live follower does not miss the one that came while it read. */
  #hints = 0;
  #reading: Promise<void> | undefined;
  #again = false;

  constructor(
    private readonly context: Pick<Context, "db" | "log">,
    readonly incidentId: number,
  ) {}

  get isEmpty(): boolean {
    return this.#followers.size === 0;
  }

  get tail(): number {
    return this.#tail;
  }

  get connections(): Connection[] {
    return [...this.#followers.keys()];
  }

  /** Follows from `cursor` on. The caller has checked that the actor may read the incident. */
  add(connection: Connection, cursor: number): void {
    // Nothing to catch up with: whatever comes after the tail is sent to all. Its access was checked at this tail.
    const isLive = cursor === this.#tail && this.#hasLive;
    const follower = { connection, cursor, isLive };
    this.#followers.set(connection, follower);
    if (!isLive) void this.#catchUp(follower);
  }

  remove(connection: Connection): void {
    this.#followers.delete(connection);
  }

  /** Reads new events. Called after a hint, and periodically in case a hint was lost. */
  wake(): Promise<void> {
    this.#hints += 1;
    if (this.#reading) this.#again = true;
    else if (this.#hasLive) {
      this.#reading = this.#readAll().finally(() => {
        this.#reading = undefined;
      });
    }
    return this.#reading ?? Promise.resolve();
  }

  /** Disconnects everybody after the incident was deleted. Their next request gets 404. */
  end(): void {
    for (const connection of this.connections) connection.close("deleted");
  }

  /** Disconnects everybody but admins and these readers. */
  keepOnly(readers: ReadonlySet<string>): void {
    for (const connection of this.connections) {
      const { user, admin } = connection.actor;
      if (!admin && !readers.has(user)) connection.close("no_access");
    }
  }

  get #hasLive(): boolean {
    for (const { isLive } of this.#followers.values()) if (isLive) return true;
    return false;
  }

  #live(): Follower[] {
    return [...this.#followers.values()].filter(({ isLive }) => isLive);
  }

  async #readAll(): Promise<void> {
    try {
      do {
        this.#again = false;
        let isMore = await this.#readOnce(false);
        while (isMore) isMore = await this.#readOnce(true);
        await Bun.sleep(gatherMilliseconds);
      } while (this.#again && this.#hasLive);
    } catch (error) {
      // The next hint or check reads again, so only time is lost.
      this.context.log.debug({ err: error, incident_id: this.incidentId }, "could not read new events");
    }
  }

  /**
   * @param isBurst whether followers just got as much as they may keep
   * @returns whether there may be more
   */
  async #readOnce(isBurst: boolean): Promise<boolean> {
    const slice = await readSlice(this.context.db, "server", this.incidentId, this.#tail);
    if (!slice) {
      this.end();
      return false;
    }
    if (slice.visibility !== "Open") {
      const readers = await readersOf(this.context.db, [this.incidentId]);
      this.keepOnly(readers.get(this.incidentId)!);
    }
    // After a restore, new events get smaller ids than those already sent.
    if (slice.tail < this.#tail) this.#goBack(slice.tail);
    let left: readonly Event[] = slice.events;
    for (let isNext = isBurst; left.length > 0; isNext = true) {
      // Give the connections time to send. Otherwise it would look as if nobody read.
      if (isNext) await Bun.sleep(0);
      const piece = firstPiece(left);
      left = left.slice(piece.events.length);
      this.#sendToAll(piece, isNext);
    }
    return slice.events.length === eventsAtOnce;
  }

  #sendToAll({ events, texts }: Piece, isBurst: boolean): void {
    const last = events.at(-1)!.id;
    this.#tail = Math.max(this.#tail, last);
    const all = encode(texts);
    for (const follower of this.#live()) {
      if (last <= follower.cursor) continue;
      const { connection, cursor } = follower;
      if (isBurst && connection.isBehind) {
        // It continues at its own pace.
        follower.isLive = false;
        void this.#catchUp(follower);
        continue;
      }
      follower.cursor = last;
      // One that went live during the read may have had some of its events.
      const isNew = cursor < events[0]!.id;
      connection.send(isNew ? all : encode(texts.filter((_, i) => events[i]!.id > cursor)));
    }
  }

  #goBack(tail: number): void {
    this.#tail = tail;
    for (const follower of this.#followers.values()) follower.cursor = Math.min(follower.cursor, tail);
  }

  /** Sends a follower what it missed, as fast as it reads, and then lets it go live. */
  async #catchUp(follower: Follower): Promise<void> {
    const { connection } = follower;
    const { db, log } = this.context;
    let limit = eventsAtOnce;
    for (;;) {
      await connection.room();
      if (connection.ended) return;
      const hints = this.#hints;
      const slice = await readSlice(db, connection.actor, this.incidentId, follower.cursor, limit).catch(
        (error: unknown) => {
          log.debug({ err: error, incident_id: this.incidentId }, "could not read missed events");
          return "failed" as const;
        },
      );
      // It reconnects and reads again, or gets an error that says why it cannot.
      if (slice === "failed") return connection.close("failed");
      if (!slice) return connection.close("no_access");
      if (slice.tail < follower.cursor) follower.cursor = slice.tail;
      if (slice.events.length > 0) {
        const { events, texts } = firstPiece(slice.events);
        // The rest is read again, which is most of a slice if its events are long.
        limit = events.length < slice.events.length ? events.length : Math.min(2 * limit, eventsAtOnce);
        follower.cursor = events.at(-1)!.id;
        connection.send(encode(texts));
        continue;
      }
      const hasLive = this.#hasLive;
      if (!hasLive) this.#tail = follower.cursor;
      if (follower.cursor < this.#tail) {
        // The live followers are ahead, or a restore has removed the events that they got. While many events come, the
        // read for all does not end.
        await Promise.race([this.wake(), Bun.sleep(gatherMilliseconds)]);
      } else if (hasLive || hints === this.#hints) break;
      // Otherwise, a hint came during the read, and nobody else follows it.
    }
    follower.isLive = true;
  }
}

interface Piece {
  events: readonly Event[];
  texts: string[];
}

/** The first events that fit into the backlog of a connection, so that a slow reader keeps no more in memory. */
function firstPiece(events: readonly Event[]): Piece {
  const texts: string[] = [];
  let length = 0;
  while (texts.length < events.length && length < longestBacklog) {
    const text = encodeEvent(events[texts.length]!);
    texts.push(text);
    length += text.length;
  }
  return { events: events.slice(0, texts.length), texts };
}
