import type { Outage } from "./outage.ts";
import { pause } from "./time.ts";

const pollSeconds = 2;
/** How long plugin calls may take after a stop. The next worker does the rest. */
const graceMilliseconds = 20_000;

export interface LaneTimes {
  /** Seconds between polls. */
  poll?: number;
  /** Milliseconds. */
  grace?: number;
}

/** Durable work in lanes. Each lane has a limit of its own, so that one that hangs leaves room for the others. */
export interface LaneWork<Lane, Claim> {
  /** Lists the lanes with due work. */
  due(): Promise<Lane[]>;
  nameOf(lane: Lane): string;
  /** How many claims of one lane a worker processes at a time. */
  atOnce: number;
  claim(lane: Lane, limit: number): Promise<Claim[]>;
  /** Does the work and records its outcome. `over` aborts when the worker no longer waits for it. */
  attempt(claim: Claim, over: AbortSignal): Promise<void>;
}

interface Filling<Lane> {
  lane: Lane;
  running: number;
  /** A claim query is running. If `again` is set, another one follows. */
  filling: boolean;
  again: boolean;
}

/** Does due work until `stop` aborts. Any number of workers may share it. */
export async function workInLanes<Lane, Claim>(
  { due, nameOf, atOnce, claim, attempt }: LaneWork<Lane, Claim>,
  outage: Outage,
  stop: AbortSignal,
  { poll = pollSeconds, grace = graceMilliseconds }: LaneTimes = {},
): Promise<void> {
  const lanes = new Map<string, Filling<Lane>>();
  const running = new Set<Promise<void>>();
  const over = new AbortController();
  const begin = async (filled: Filling<Lane>, one: Claim) => {
    await attempt(one, over.signal);
    filled.running -= 1;
    if (filled.again) await fill(filled);
  };
  /** Claims and starts due work, up to the lane's limit. */
  const fill = async (filled: Filling<Lane>) => {
    filled.again = true;
    if (filled.filling) return;
    filled.filling = true;
    while (filled.again && filled.running < atOnce && !stop.aborted) {
      const limit = atOnce - filled.running;
      const claims = await outage.outlast(() => claim(filled.lane, limit), stop);
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
    for (const lane of (await outage.outlast(due, stop)) ?? []) {
      const name = nameOf(lane);
      const filled = lanes.get(name) ?? { lane, running: 0, filling: false, again: false };
      lanes.set(name, filled);
      void fill(filled);
    }
    await pause(poll * 1000, stop);
  }
  await Promise.race([allOf(running), pause(grace, over.signal)]);
  // Stop waiting for plugins, and give back what they were working on.
  over.abort();
  await allOf(running);
}

async function allOf(running: ReadonlySet<Promise<void>>): Promise<void> {
  while (running.size > 0) await Promise.all(running);
}
