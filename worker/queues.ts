import type { Outage } from "./outage.ts";
import { pause } from "./time.ts";

const pollSeconds = 2;
/** The shortest time between two polls, which limits the load when many wakes come one after the other. */
const leastMilliseconds = 50;
/** How long plugin calls may take after a stop. The next worker does the rest. */
const graceMilliseconds = 20_000;

export interface QueueTimes {
  /** Seconds between polls. */
  poll?: number;
  /** Milliseconds. */
  grace?: number;
}

/** Ends the pause between two polls. */
export class Wake {
  #pause = new AbortController();

  now(): void {
    this.#pause.abort();
  }

  /** Resolves after the given time, at the next wake or at once if there was one since the last pause. */
  async pause(milliseconds: number, stop: AbortSignal): Promise<void> {
    const end = () => this.now();
    stop.addEventListener("abort", end, { once: true });
    if (!stop.aborted) await pause(milliseconds, this.#pause.signal);
    stop.removeEventListener("abort", end);
    this.#pause = new AbortController();
  }
}

/** Durable work in queues. Each queue has a limit of its own, so that one that hangs leaves room for the others. */
export interface QueueWork<Queue, Claim> {
  /** Lists the queues with due work. */
  due(): Promise<Queue[]>;
  nameOf(queue: Queue): string;
  /** How many claims of one queue a worker processes at a time. */
  atOnce: number;
  claim(queue: Queue, limit: number): Promise<Claim[]>;
  /** Does the work and records its outcome. `over` aborts when the worker no longer waits for it. */
  attempt(claim: Claim, over: AbortSignal): Promise<void>;
}

interface Filling<Queue> {
  queue: Queue;
  running: number;
  /** A claim query is running. If `again` is set, another one follows. */
  filling: boolean;
  again: boolean;
}

/** Does due work until `stop` aborts. Any number of workers may share it. */
export async function processQueues<Queue, Claim>(
  { due, nameOf, atOnce, claim, attempt }: QueueWork<Queue, Claim>,
  outage: Outage,
  stop: AbortSignal,
  { poll = pollSeconds, grace = graceMilliseconds }: QueueTimes = {},
  wake = new Wake(),
): Promise<void> {
  const queues = new Map<string, Filling<Queue>>();
  const running = new Set<Promise<void>>();
  const over = new AbortController();
  const begin = async (filled: Filling<Queue>, one: Claim) => {
    await attempt(one, over.signal);
    filled.running -= 1;
    // It may have held back another one.
    await fill(filled);
  };
  /** Claims and starts due work, up to the queue's limit. */
  const fill = async (filled: Filling<Queue>) => {
    filled.again = true;
    if (filled.filling) return;
    filled.filling = true;
    while (filled.again && filled.running < atOnce && !stop.aborted) {
      const limit = atOnce - filled.running;
      const claims = await outage.retryUntilAvailable(() => claim(filled.queue, limit), stop);
      // A full answer means that more may be due: claim again without waiting for the next poll.
      filled.again = claims?.length === limit;
      for (const one of claims ?? []) {
        filled.running += 1;
        const end: Promise<void> = begin(filled, one).finally(() => running.delete(end));
        running.add(end);
      }
    }
    filled.filling = false;
  };
  while (!stop.aborted) {
    const next = performance.now() + leastMilliseconds;
    for (const queue of (await outage.retryUntilAvailable(due, stop)) ?? []) {
      const name = nameOf(queue);
      const filled = queues.get(name) ?? { queue, running: 0, filling: false, again: false };
      queues.set(name, filled);
      void fill(filled);
    }
    await wake.pause(poll * 1000, stop);
    await pause(next - performance.now(), stop);
  }
  await Promise.race([allOf(running), pause(grace, over.signal)]);
  // Stop waiting for plugins, and release what they were working on.
  over.abort();
  await allOf(running);
}

async function allOf(running: ReadonlySet<Promise<void>>): Promise<void> {
  while (running.size > 0) await Promise.all(running);
}
