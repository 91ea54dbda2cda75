import { writeSync } from "node:fs";
import pino from "pino";

const waitMilliseconds = 10;
const lineFeed = 10;
/** The maximum number of buffered characters. */
const largestBatch = 65_536;

/**
 * Buffers lines for `destination`, since writing a line costs more than formatting it. A warning or worse is written
 * immediately, along with the buffered lines; other lines within 10 ms, or when the process ends.
 */
export class GatheredLines implements pino.DestinationStream {
  /** Tells pino to set `lastLevel`. */
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
 * Writes to standard error synchronously. A writer thread would lose the last lines when the process ends, and those
 * explain why; and if the reader stalled, its queue would fill the memory. Output that cannot be written (a full disk,
 * no reader) is lost, but does not stop the program.
 */
export function standardError(
  write: (bytes: Uint8Array) => number = (bytes) => writeSync(2, bytes),
): pino.DestinationStream {
  let last: number | undefined = lineFeed;
  return {
    write(lines) {
      // A line after a partial one must start on a new line.
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
