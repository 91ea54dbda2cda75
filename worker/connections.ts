import { type Database, type DatabaseClient, openDatabase } from "../drizzle/client.ts";
import type { PoolWatch } from "../drizzle/watch.ts";

/** Claims, leases and heartbeats have connections of their own: no task's work holds them up. */
const scheduleConnections = 3;

/** The worker's connections to PostgreSQL. Ask for them each time: they are replaced when they are of no use. */
export class Connections {
  #schedule: DatabaseClient;
  #tasks: DatabaseClient;

  constructor(
    private readonly url: string,
    private readonly poolSize: number,
    private readonly watch?: (pool: string, size: number) => PoolWatch,
    private readonly options?: { prepare: boolean },
  ) {
    this.#schedule = this.#open("schedule", scheduleConnections);
    this.#tasks = this.#open("tasks", poolSize);
  }

  get schedule(): Database {
    return this.#schedule.db;
  }

  get tasks(): Database {
    return this.#tasks.db;
  }

  /** For connections that are open and on which nobody answers: PostgreSQL's client waits for ever on such. */
  reopen(): void {
    const old = [this.#schedule, this.#tasks];
    this.#schedule = this.#open("schedule", scheduleConnections);
    this.#tasks = this.#open("tasks", this.poolSize);
    for (const client of old) client.close().catch(() => {});
  }

  async close(): Promise<void> {
    await Promise.all([this.#schedule.close(), this.#tasks.close()]);
  }

  #open(pool: string, size: number): DatabaseClient {
    return openDatabase(this.url, size, this.watch?.(pool, size), this.options);
  }
}
