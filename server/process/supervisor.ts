import { SvcError } from "../../platform/errors.ts";
import { joinMetrics } from "../metrics/join.ts";
import { killMilliseconds } from "./supervised.ts";
import { Worker, type WorkerOptions } from "./worker.ts";

/** A worker that has lived this long was healthy: its exit says nothing about the next one. */
const steadyMilliseconds = 10_000;
const firstPauseMilliseconds = 100;
const longestPauseMilliseconds = 10_000;
/** How long it may take until all processes of a group have a signal. */
const groupMilliseconds = 500;
/** Timeout for a worker's metrics; collectors usually wait for 10 s. */
const metricsMilliseconds = 2000;

export interface SupervisorOptions extends WorkerOptions {
  count: number;
  graceSeconds: number;
  /** A worker that is not ready within this time is stuck, and is ended. */
  startSeconds: number;
  log: Record<"info" | "warn", (text: string) => void>;
}

/** Keeps the requested number of workers running until it is stopped. */
export class Supervisor {
  readonly #workers: Worker[] = [];
  readonly #tended: Promise<void>[] = [];
  readonly #stop = Promise.withResolvers<void>();
  #stopping = false;
  #leaving = false;
  #verbose = false;
  /** Replacements happen one at a time. */
  #replacing: Promise<unknown> = Promise.resolve();

  constructor(private readonly options: SupervisorOptions) {}

  /**
   * Starts the first worker, then the others.
   * @throws SvcError if one cannot be started; then none is left running
   */
  async start(): Promise<void> {
    for (let slot = 0; slot < this.options.count && !this.#stopping; slot++) {
      // A problem of the first worker affects all of them, and is reported once.
      const [first] = this.#workers;
      if (slot === 1 && (!(await first?.ready) || this.#stopping)) break;
      this.#workers[slot] = this.#spawn();
    }
    const ready = await Promise.all(this.#workers.map((worker) => worker.ready));
    if (this.#stopping) return;
    const lost = this.#workers[ready.indexOf(false)];
    if (lost) {
      const how = await lost.ended;
      // The signal may have been sent to the whole group and be about to reach us.
      if (lost.wasKilled) await Promise.race([Bun.sleep(groupMilliseconds), this.#stop.promise]);
      if (this.#stopping) return;
      await this.stop();
      if (lost.pid === undefined) throw new SvcError("configuration", `A worker ${how}`);
      const sentence = `A worker failed to start: it ${how}`;
      throw new SvcError("configuration", lost.wasKilled ? sentence : `${sentence}; see its output above`);
    }
    this.#workers.forEach((_, slot) => void this.#tended.push(this.#tend(slot)));
  }

  /**
   * Replaces all workers, one at a time; each stops when its successor is ready.
   * @returns false if one could not be started: the running ones continue
   */
  roll(): Promise<boolean> {
    return this.#inTurn(async () => {
      for (const slot of this.#workers.keys()) if (!(await this.#replace(slot))) return false;
      return true;
    });
  }

  /** Makes all workers report that they will stop soon. */
  leave(): void {
    this.#leaving = true;
    for (const worker of this.#workers) worker.order("leave");
  }

  /** Switches all workers to log level `debug`, or back. */
  toggleVerbosity(): void {
    this.#verbose = !this.#verbose;
    this.options.log.info(
      this.#verbose ? "workers log at debug, until SIGUSR2" : "workers log as configured",
    );
    for (const worker of this.#workers) this.#tellVerbosity(worker);
  }

  /** The metrics of all workers, in Prometheus text format. */
  async metrics(): Promise<string> {
    return joinMetrics(await Promise.all(this.#workers.map((worker) => worker.metrics(metricsMilliseconds))));
  }

  /** Stops all workers concurrently. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#stop.resolve();
    await Promise.all([this.#replacing, ...this.#workers.map((worker) => this.#end(worker))]);
    await Promise.all(this.#tended);
  }

  #spawn(takesOver = false): Worker {
    const worker = new Worker({ ...this.options, takesOver });
    const { startSeconds, log } = this.options;
    const timer = setTimeout(() => {
      log.warn(`worker ${worker.pid} did not answer within ${startSeconds} s`);
      void this.#end(worker);
    }, startSeconds * 1000);
    void worker.ready.then(() => clearTimeout(timer));
    // A worker that becomes ready while all are leaving leaves with them.
    void worker.ready.then((ready) => ready && this.#leaving && worker.order("leave"));
    void worker.ready.then((ready) => ready && this.#verbose && this.#tellVerbosity(worker));
    return worker;
  }

  #tellVerbosity(worker: Worker): void {
    worker.order(this.#verbose ? "log verbosely" : "log as configured");
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#replacing.then(work);
    this.#replacing = done.catch(() => {});
    return done;
  }

  async #replace(slot: number): Promise<boolean> {
    if (this.#stopping) return true;
    const old = this.#workers[slot];
    const next = this.#spawn(true);
    const ready = await Promise.race([next.ready, this.#stop.promise.then(() => false)]);
    if (!ready || this.#stopping) {
      // It has answered hardly any requests yet.
      await next.stop(this.options.graceSeconds * 1000);
      if (!this.#stopping) this.options.log.warn("the new worker did not start; the old one keeps running");
      return false;
    }
    this.#workers[slot] = next;
    if (old) await this.#end(old);
    next.order("taken over");
    return true;
  }

  async #end(worker: Worker): Promise<void> {
    await worker.stop(this.options.graceSeconds * 1000 + killMilliseconds);
  }

  /** Starts another worker whenever one exits, with increasing delays if they exit at once. */
  async #tend(slot: number): Promise<void> {
    let pause = firstPauseMilliseconds;
    for (;;) {
      const worker = this.#workers[slot];
      const how = await worker?.ended;
      if (this.#stopping) return;
      if (worker === undefined || this.#workers[slot] !== worker) continue;
      const steady = performance.now() - worker.startedAt > steadyMilliseconds;
      pause = steady ? firstPauseMilliseconds : pause;
      const which = worker.pid === undefined ? "a worker" : `worker ${worker.pid}`;
      this.options.log.warn(`${which} ${how}; starting another in ${pause / 1000} s`);
      await Promise.race([Bun.sleep(pause), this.#stop.promise]);
      if (this.#stopping) return;
      if (this.#workers[slot] === worker) this.#workers[slot] = this.#spawn();
      pause = Math.min(pause * 2, longestPauseMilliseconds);
    }
  }
}
