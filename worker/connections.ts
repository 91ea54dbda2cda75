import type { DatabasePlace } from "../core/open.ts";
import { type Database, type DatabaseClient, openDatabase, shortStatements } from "../drizzle/client.ts";

/** Claims, leases and heartbeats use a separate pool, so that tasks never delay them. */
export const scheduleConnections = 3;
/** Tasks read and write batches. Deliveries and revocations use their pool too. */
const taskStatements = { limitSeconds: 60 };

/** The worker's connections to PostgreSQL. Read the properties on every use: `reopen` replaces the pools. */
export class Connections {
  #schedule: DatabaseClient;
  #tasks: DatabaseClient;

  constructor(
    private readonly place: DatabasePlace,
    private readonly limits = taskStatements,
  ) {
    this.#schedule = this.#openSchedule();
    this.#tasks = this.#openTasks();
  }

  get schedule(): Database {
    return this.#schedule.db;
  }

  /** The tasks' pool. */
  get db(): Database {
    return this.#tasks.db;
  }

  /**
   * Replaces connections that are open but no longer answer, before the lease of a run ends. The schedule's pending
   * queries are rejected at once and retried. A task would lose its work, so its connections get more time.
   */
  reopen(): void {
    const [schedule, tasks] = [this.#schedule, this.#tasks];
    this.#schedule = this.#openSchedule();
    this.#tasks = this.#openTasks();
    schedule.close(0).catch(() => {});
    tasks.close().catch(() => {});
  }

  async close(): Promise<void> {
    await Promise.all([this.#schedule.close(), this.#tasks.close()]);
  }

  #openSchedule(): DatabaseClient {
    const { url, watch, prepare, pooled } = this.place;
    const size = scheduleConnections;
    return openDatabase(url, size, watch?.("schedule", size), { prepare, pooled, ...shortStatements });
  }

  #openTasks(): DatabaseClient {
    const { url, watch, prepare, pooled, poolSize } = this.place;
    return openDatabase(url, poolSize, watch?.("tasks", poolSize), { prepare, pooled, ...this.limits });
  }
}
