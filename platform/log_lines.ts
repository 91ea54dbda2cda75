import { writeSync } from "node:fs";
import pino from "pino";

const waitMilliseconds = 10;
const lineFeed = 10;
/** Characters that wait at most. */
const largestBatch = 65_536;

/**
 * Lines on their way to `destination`, many at a time: to hand one over costs more than to make it. A warning, and what is
 * worse, goes at once and takes along what waits; the rest goes within 10 ms, or when the process ends.
 */
export class GatheredLines implements pino.DestinationStream {
  /** Asks pino for `lastLevel`. */
  readonly [pino.symbols.needsMetadataGsym] = true;
  lastLevel = 0;
  #waiting = "";
  #timer: NodeJS.Timeout | undefined;

  constructor(private readonly destination: pino.DestinationStream) {
    process.once("exit", () => this.#handOver());
  }

  write(line: string): void {
    this.#waiting += line;
    if (this.lastLevel >= pino.levels.values.warn! || this.#waiting.length > largestBatch) this.#handOver();
    else this.#timer ??= setTimeout(() => this.#handOver(), waitMilliseconds);
  }

  #handOver(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const lines = this.#waiting;
    this.#waiting = "";
    if (lines) this.destination.write(lines);
  }
}

/**
 * Standard error, written to before the program goes on. By a thread beside it, the last lines would be lost when the
 * process ends, which are those that tell why; and behind a reader that has stopped, all that waits would fill the memory.
 * What there is no room for (a full disk), or nobody to read, is lost, and no reason to stop.
 */
export function standardError(
  write: (bytes: Uint8Array) => number = (bytes) => writeSync(2, bytes),
): pino.DestinationStream {
  let last: number | undefined = lineFeed;
  return {
    write(lines) {
      // What comes behind a part of a line is no part of it.
      let rest = Buffer.from(last === lineFeed ? lines : `\n${lines}`);
      while (rest.length > 0) {
        try {
          const written = write(rest);
          if (written === 0) Bun.sleepSync(waitMilliseconds);
          last = rest[written - 1] ?? last;
          rest = rest.subarray(written);
        } catch (cause) {
          if ((cause as NodeJS.ErrnoException).code !== "EAGAIN") return;
          Bun.sleepSync(waitMilliseconds);
        }
      }
    },
  };
}
