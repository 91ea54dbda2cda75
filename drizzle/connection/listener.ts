import { setTimeout as delay } from "node:timers/promises";
import { Unavailable } from "../../platform/errors.ts";
import type { Log } from "../../platform/log.ts";
import { reasonOf } from "../database_error.ts";
import { refusePooler } from "./database_address.ts";
import { openSql } from "./sql.ts";

const heartbeatMilliseconds = 5000;
const heartbeatPatienceMilliseconds = 3000;
/** A heartbeat, and the delay of a busy process. */
const longestSilenceMilliseconds = heartbeatMilliseconds + heartbeatPatienceMilliseconds + 1000;

const [shortestPause, longestPause] = [100, 5000];

/** What receives notifications. */
export interface Subscriber {
  /** By channel. */
  channels: Readonly<Record<string, (payload: string) => void>>;
  /** Called whenever it begins to listen: everything before may have been missed. */
  listening?(): void;
  /** Called when it no longer listens. */
  lost?(): void;
}

/** Receives PostgreSQL's notifications on one connection, which it opens again when it is lost. */
export class Listener {
  readonly #subscribers: Subscriber[] = [];
  readonly #stop = new AbortController();
  #isStarted = false;
  #running: Promise<void> = Promise.resolve();
  /** When the database last answered on this connection, by performance.now(). */
  #heardAt = Number.NEGATIVE_INFINITY;

  /** @param url the address of PostgreSQL itself, not of a pooler */
  constructor(
    private readonly url: string,
    private readonly log: Log,
  ) {}

  /** Before `start`: the channels of a connection are those of its beginning. */
  subscribe(subscriber: Subscriber): void {
    if (this.#isStarted) throw new Error("a subscription after the start would hear nothing");
    this.#subscribers.push(subscriber);
  }

  /**
   * Connects, and reconnects until it is stopped.
   * @returns once it listens or has failed once
   * @throws Unavailable when the address is a pooler's, which delivers no notifications
   */
  start(): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#isStarted = true;
    this.#running = this.#run(resolve, reject);
    return promise;
  }

  /**
   * Whether all notifications have arrived that were sent until a few seconds ago. Not in a process that was frozen: its
   * next request may be read before what has happened meanwhile.
   */
  isHeard(): boolean {
    return performance.now() - this.#heardAt < longestSilenceMilliseconds;
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #run(ready: () => void, refuse: (error: Unavailable) => void): Promise<void> {
    const { signal } = this.#stop;
    let pause = shortestPause;
    let isFirst = true;
    const listening = () => {
      pause = shortestPause;
      for (const subscriber of this.#subscribers) subscriber.listening?.();
      ready();
    };
    const notified = (channel: string, payload: string) => {
      for (const { channels } of this.#subscribers) channels[channel]?.(payload);
    };
    const heard = () => {
      this.#heardAt = performance.now();
    };
    while (!signal.aborted) {
      const channels = new Set(this.#subscribers.flatMap((subscriber) => Object.keys(subscriber.channels)));
      try {
        await listen(this.url, [...channels], { listening, notified, heard }, signal);
      } catch (error) {
        if (isFirst && error instanceof Unavailable) return refuse(error);
        this.log.warn({ err: error, ...reasonOf(error) }, "there is no listening database connection");
      }
      for (const subscriber of this.#subscribers) subscriber.lost?.();
      ready();
      isFirst = false;
      await delay(pause * (0.5 + Math.random() / 2), undefined, { signal }).catch(() => {});
      pause = Math.min(pause * 2, longestPause);
    }
  }
}

/**
 * Listens on one connection until `stop` aborts. A heartbeat detects a connection that died silently.
 *
 * @throws the reason why the connection cannot be opened or was lost
 * @throws Unavailable when the address is a pooler's
 */
async function listen(
  url: string,
  channels: readonly string[],
  on: { listening(): void; notified(channel: string, payload: string): void; heard(): void },
  stop: AbortSignal,
): Promise<void> {
  if (stop.aborted) return;
  const timers = new AbortController();
  const closed = Promise.withResolvers<never>();
  closed.promise.catch(() => {});
  const end = () => closed.reject(stop.reason);
  stop.addEventListener("abort", end, { once: true });
  const options = {
    max: 1,
    // So that operators and tests can tell this connection from those of the pool.
    connection: { application_name: "svc listen" },
    idle_timeout: undefined,
    max_lifetime: null,
    // After the error of the current statement, which says why.
    onclose: () => void setImmediate(() => closed.reject(new Error("connection closed"))),
    // The types of postgres.js do not know it.
    onnotify: on.notified,
  };
  const sql = openSql(url, options);
  const unlessClosed = (step: Promise<unknown>) => Promise.race([step, closed.promise]);
  const pause = (milliseconds: number) => delay(milliseconds, undefined, { signal: timers.signal });
  try {
    await unlessClosed(refusePooler(sql));
    await unlessClosed(sql.unsafe(channels.map((channel) => `listen ${channel}`).join("; ")));
    on.heard();
    on.listening();
    for (;;) {
      await unlessClosed(pause(heartbeatMilliseconds));
      const late = pause(heartbeatPatienceMilliseconds).then(() => {
        throw new Error("no heartbeat");
      });
      await unlessClosed(Promise.race([sql`select 1`, late]));
      on.heard();
    }
  } catch (error) {
    if (!stop.aborted) throw error;
  } finally {
    stop.removeEventListener("abort", end);
    timers.abort();
    await sql.end({ timeout: 0 }).catch(() => {});
  }
}
