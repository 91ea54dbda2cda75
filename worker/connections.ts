import type { DatabasePlace } from "../core/open.ts";
import { type Database, type DatabaseClient, openDatabase } from "../drizzle/client.ts";

/** Claims, leases and heartbeats have connections of their own: no task's work holds them up. */
const scheduleConnections = 3;

/** The worker's connections to PostgreSQL. Ask for them each time: they are replaced when they are of no use. */
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

  /** The tasks' own. */
  get db(): Database {
    return this.#tasks.db;
  }

  /**
   * For connections that are open and on which nobody answers: PostgreSQL's client waits for ever on such. What the
   * schedule has asked there is asked again at once; a task's work is done for if it is cut off, so it has a while longer.
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
