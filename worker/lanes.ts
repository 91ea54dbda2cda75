import type { Outage } from "./outage.ts";
import { pause } from "./time.ts";

const pollSeconds = 2;
/** After a stop, for plugins that are being called; what is left, another worker does. */
const graceMilliseconds = 20_000;

export interface LaneTimes {
  /** Seconds between two looks. */
  poll?: number;
  /** Milliseconds. */
  grace?: number;
}

/** Durable work in lanes: each has its own share of what is done at once, so one that hangs leaves room for the others. */
export interface LaneWork<Lane, Claim> {
  /** The lanes in which something is due. */
  due(): Promise<Lane[]>;
  nameOf(lane: Lane): string;
  /** How much of one lane a worker does at once. */
  atOnce: number;
  claim(lane: Lane, limit: number): Promise<Claim[]>;
  /** Does the work and notes what came of it. `over` aborts when it is no longer waited for. */
  attempt(claim: Claim, over: AbortSignal): Promise<void>;
}

interface Filling<Lane> {
  lane: Lane;
  running: number;
  /** Claims are being asked for, or should be asked for again. */
  filling: boolean;
  again: boolean;
}

/** Does what is due until `stop` aborts. Any number of workers may share it. */
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
  /** Begins what is due, as much as there is room for. */
  const fill = async (filled: Filling<Lane>) => {
    filled.again = true;
    if (filled.filling) return;
    filled.filling = true;
    while (filled.again && filled.running < atOnce && !stop.aborted) {
      const limit = atOnce - filled.running;
      const claims = await outage.outlast(() => claim(filled.lane, limit), stop);
      // There may be hundreds: whoever has done one looks for the next without a pause.
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
  // Plugins are no longer waited for, and what they had is given back.
  over.abort();
  await allOf(running);
}

async function allOf(running: ReadonlySet<Promise<void>>): Promise<void> {
  while (running.size > 0) await Promise.all(running);
}
