import type { Context } from "../../core/context.ts";
import { changesAfter, newestEvent, newestEvents } from "../../core/incident/stream/board.ts";
import { type Connection, encode, encodeChange } from "./connection.ts";

/** Longer than any transaction that records an event. */
const longestTransaction = 60_000;
/** Events before these had been committed when the first client connected. */
const eventsBefore = 1000;

/** The clients of `GET /incidents/stream` in this process, which sends them the incidents that have changed. */
export class Board {
  readonly #connections = new Set<Connection>();
  /** The newest event of each incident that was sent, or existed before the first client connected. */
  #sent = new Map<number, number>();
  /** Events up to this id are not searched for again. */
  #low = 0;
  /** The newest event at some times, oldest first. */
  #tops: { at: number; top: number }[] = [];
  #ready: Promise<void> | undefined;
  readonly #hinted = new Map<number, number>();
  #sending: Promise<void> | undefined;

  constructor(private readonly context: Pick<Context, "db" | "log">) {}

  /** Records the newest events so far. Call it before answering a client: later events are sent. */
  async prepare(): Promise<void> {
    this.#ready ??= this.#begin().catch((error: unknown) => {
      this.#ready = undefined;
      throw error;
    });
    await this.#ready;
  }

  add(connection: Connection): void {
    this.#connections.add(connection);
    this.#ready ??= Promise.resolve();
  }

  remove(connection: Connection): void {
    this.#connections.delete(connection);
    if (this.#connections.size > 0) return;
    this.#ready = undefined;
    this.#hinted.clear();
  }

  /** An incident has a new event. */
  hint(incidentId: number, eventId: number): void {
    if (this.#connections.size === 0) return;
    if (eventId <= (this.#sent.get(incidentId) ?? 0)) return;
    this.#hinted.set(incidentId, eventId);
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = undefined;
    });
  }

  /** Looks for events whose hint was lost. */
  async recheck(): Promise<void> {
    if (this.#connections.size === 0) return;
    const newest = this.#tops.at(-1)?.top ?? 0;
    if ((await newestEvent(this.context.db)) < newest) return this.#startAgain();
    const { top, tails } = await newestEvents(this.context.db, this.#low);
    for (const [id, tail] of tails) this.hint(id, tail);
    await this.#sending;
    // Not less than before, if a restore ended between the two reads: the next check finds out.
    this.#forget(Math.max(top, newest));
  }

  async #begin(): Promise<void> {
    const { db } = this.context;
    this.#low = Math.max(0, (await newestEvent(db)) - eventsBefore);
    const { top, tails } = await newestEvents(db, this.#low);
    this.#sent = tails;
    this.#tops = [{ at: performance.now(), top }];
  }

  /** After a restore, the clients reconnect and read everything again. */
  #startAgain(): void {
    for (const connection of [...this.#connections]) connection.close("failed");
  }

  #forget(top: number): void {
    const now = performance.now();
    this.#tops.push({ at: now, top });
    while (this.#tops.length > 1 && this.#tops[0]!.at < now - longestTransaction)
      this.#low = this.#tops.shift()!.top;
    for (const [id, tail] of this.#sent) if (tail <= this.#low) this.#sent.delete(id);
  }

  async #sendAll(): Promise<void> {
    try {
      while (this.#hinted.size > 0) {
        const after = new Map(
          [...this.#hinted.keys()].map((id) => [id, this.#sent.get(id) ?? this.#low] as const),
        );
        this.#hinted.clear();
        await this.#sendChanges(after);
      }
    } catch (error) {
      // The next check finds them again.
      this.context.log.debug({ err: error }, "could not read which incidents have changed");
    }
  }

  async #sendChanges(after: ReadonlyMap<number, number>): Promise<void> {
    for (const change of await changesAfter(this.context.db, after)) {
      const { id, tail, readers } = change;
      if (tail <= after.get(id)!) continue;
      this.#sent.set(id, tail);
      const bytes = encode([encodeChange(change)]);
      for (const connection of [...this.#connections]) {
        const { user, admin } = connection.actor;
        if (readers === "everybody" || admin || readers.has(user)) connection.send(bytes);
      }
    }
  }
}
