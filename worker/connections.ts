import type { DatabasePlace } from "../core/open.ts";
import { type Database, type DatabaseClient, openDatabase } from "../drizzle/client.ts";

/** Claims, leases and heartbeats use a separate pool, so that tasks never delay them. */
const scheduleConnections = 3;

/** The worker's connections to PostgreSQL. Read the properties on every use: `reopen` replaces the pools. */
export class Connections {
  #schedule: DatabaseClient;
  #tasks: DatabaseClient;

  constructor(private readonly place: DatabasePlace) {
    this.#schedule = this.#open("schedule", scheduleConnections);
    this.#tasks = this.#open("tasks", place.poolSize);
  }

  get schedule(): Database {
    return this.#schedule.db;
  }

  /** The tasks' pool. */
  get db(): Database {
    return this.#tasks.db;
  }

  /**
   * Replaces connections that are open but no longer answer: PostgreSQL's client would wait for them indefinitely. The
   * schedule's pending queries are rejected at once and retried. A task would lose its work, so its connections get
   * more time.
   */
  reopen(): void {
    const [schedule, tasks] = [this.#schedule, this.#tasks];
    this.#schedule = this.#open("schedule", scheduleConnections);
    this.#tasks = this.#open("tasks", this.place.poolSize);
    schedule.close(0).catch(() => {});
    tasks.close().catch(() => {});
  }

  async close(): Promise<void> {
    await Promise.all([this.#schedule.close(), this.#tasks.close()]);
  }

  #open(pool: string, size: number): DatabaseClient {
    const { url, watch, prepare } = this.place;
    return openDatabase(url, size, watch?.(pool, size), { prepare });
  }
}
