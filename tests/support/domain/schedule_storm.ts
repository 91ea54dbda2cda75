import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql as drizzleSql } from "drizzle-orm";
import { openSql, type Sql, type Transaction } from "../../../drizzle/client.ts";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../../drizzle/embedded.ts";
import { upgrade } from "../../../drizzle/revision/upgrade.ts";
import { openSpoiltWay, type SpoiltWay } from "../database/spoilt_way.ts";
import { until } from "../process/until.ts";

export const stormTasks = Array.from({ length: 8 }, (_, i) => `task-${i}`);
export const stormPeriodMilliseconds = 40;
export const stormLeaseSeconds = 2;

const skews = [-300, 0, 300];

/** Records the writer and the current owner of a run, in a transaction of the run. */
export async function noteWriter(
  tx: Transaction,
  { task, slot, owner }: { task: string; slot: Date; owner: string },
): Promise<void> {
  // Failures may happen here.
  await Bun.sleep(Math.random() * 10);
  await tx.execute(drizzleSql`
    insert into written select task, slot, ${owner}, owner, state from run
    where task = ${task} and slot = ${slot.toISOString()}::timestamptz`);
}

/** Workers that wrote in another worker's run after being frozen, cut off or considered dead. */
export const strayWriters = (sql: Sql) =>
  sql`select * from written where owner <> held_by or state <> 'Running'`;

interface StormWorker {
  child: Bun.Subprocess;
  way: SpoiltWay;
}

/** Three workers, each with a separate proxy to one PostgreSQL, and the failures that can happen to them. */
export class Storm {
  /** The number of failures of each kind. */
  readonly happened: Record<string, number> = {};
  readonly #workers: StormWorker[] = [];

  private constructor(
    private readonly directory: string,
    private server: EmbeddedPostgres,
    private readonly below: (limit: number) => number,
  ) {}

  /** `below` returns integers below a limit, which decide what happens. */
  static async start(below: (limit: number) => number): Promise<Storm> {
    const directory = await mkdtemp(join(tmpdir(), "svc-storm-"));
    const server = await startEmbeddedPostgres({ directory });
    await upgrade({ url: server.url });
    const storm = new Storm(directory, server, below);
    await storm.asking((sql) =>
      sql.unsafe(`create table effect (task text, slot timestamptz, primary key (task, slot));
        create table written (task text, slot timestamptz, owner text, held_by text, state text)`),
    );
    for (const skew of skews) storm.#workers.push(await storm.#open(skew));
    return storm;
  }

  async asking<T>(ask: (sql: Sql) => Promise<T>): Promise<T> {
    const sql = openSql(this.server.url, { max: 1 });
    try {
      return await ask(sql);
    } finally {
      await sql.end({ timeout: 5 });
    }
  }

  /** Causes a failure of one of the workers, or of PostgreSQL. */
  async strike(): Promise<void> {
    const at = this.below(this.#workers.length);
    const { child, way } = this.#workers[at]!;
    const all = [
      ["kill -9", () => this.#replace(at)],
      ["kill -9", () => this.#replace(at)],
      ["SIGSTOP, SIGCONT", () => this.#freeze(child)],
      ["SIGSTOP, SIGCONT", () => this.#freeze(child)],
      ["connections cut", () => way.cut()],
      ["connections cut", () => way.cut()],
      ["connections half open", () => way.silence()],
      ["PostgreSQL crashed", () => this.#crash()],
      ["PostgreSQL restarted", () => this.#restart()],
    ] as const;
    const [name, act] = all[this.below(all.length)]!;
    this.happened[name] = (this.happened[name] ?? 0) + 1;
    await act();
  }

  /** Waits until the workers finish their runs and exit. @returns their exit codes */
  async calm(): Promise<(number | null)[]> {
    for (const { child } of this.#workers) child.kill("SIGTERM");
    return Promise.all(this.#workers.map(({ child }) => child.exited));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { child } of this.#workers) child.kill("SIGKILL");
    await Promise.all(this.#workers.map(({ child }) => child.exited));
    for (const { way } of this.#workers) way.close();
    await this.server.stop();
    await rm(this.directory, { recursive: true, force: true });
  }

  async #open(skew: number): Promise<StormWorker> {
    const way = await openSpoiltWay(this.server.url);
    const child = Bun.spawn([process.execPath, join(import.meta.dir, "schedule_storm_program.ts")], {
      env: {
        PATH: process.env.PATH,
        SVC_DATABASE_URL: way.url,
        SVC_DATABASE_POOL_SIZE: String(stormTasks.length),
        SVC_LOG_LEVEL: "warn",
        SVC_TEST_SKEW: String(skew),
      },
      stdio: ["ignore", "ignore", "ignore"],
    });
    return { child, way };
  }

  async #replace(at: number): Promise<void> {
    const { child, way } = this.#workers[at]!;
    child.kill("SIGKILL");
    await child.exited;
    way.close();
    this.#workers[at] = await this.#open(skews[this.below(skews.length)]!);
  }

  /** Freezes a process for longer than a lease. */
  async #freeze(child: Bun.Subprocess): Promise<void> {
    child.kill("SIGSTOP");
    await Bun.sleep(stormLeaseSeconds * 1000 + this.below(1000));
    child.kill("SIGCONT");
  }

  /** Kills a backend, after which PostgreSQL ends all backends and recovers from its log. */
  async #crash(): Promise<void> {
    await this.asking(async (sql) => {
      const [row] = await sql`select pg_backend_pid() as pid`;
      process.kill(row?.pid, "SIGKILL");
      await sql`select pg_sleep(60)`;
    }).catch(() => {});
    const answers = () => this.asking(async (sql) => (await sql`select`).length === 1).catch(() => false);
    await until("PostgreSQL to be back", answers);
  }

  async #restart(): Promise<void> {
    const { port } = this.server;
    await this.server.stop();
    await Bun.sleep(this.below(2000));
    this.server = await startEmbeddedPostgres({ directory: this.directory, port });
  }
}
