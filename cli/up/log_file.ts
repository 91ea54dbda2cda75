import { closeSync, mkdirSync, openSync, renameSync, writeSync } from "node:fs";
import { dirname } from "node:path";

/** Two files of up to this size are kept for each process: the current one, and `.1`, the previous one. */
const largestBytes = 10 * 1024 * 1024;

/**
 * A log file that is rotated to `<file>.1` at each start, and when it is full. Lines that cannot be written are lost;
 * `fault` is called the first time.
 */
export class LogFile {
  #descriptor: number | undefined;
  #size = 0;
  #faulty = false;

  constructor(
    private readonly path: string,
    private readonly fault: (error: Error) => void,
    private readonly limit = largestBytes,
  ) {
    this.#try(() => this.#begin());
  }

  write(line: string): void {
    const bytes = Buffer.from(line);
    this.#try(() => {
      if (this.#descriptor === undefined || (this.#size > 0 && this.#size + bytes.length > this.limit))
        this.#begin();
      this.#size += bytes.length;
      writeSync(this.#descriptor!, bytes);
    });
  }

  end(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
    this.#descriptor = undefined;
  }

  #begin(): void {
    this.end();
    mkdirSync(dirname(this.path), { recursive: true, mode: 0o700 });
    try {
      renameSync(this.path, `${this.path}.1`);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
    this.#descriptor = openSync(this.path, "w", 0o600);
    this.#size = 0;
  }

  #try(work: () => void): void {
    try {
      work();
    } catch (error) {
      if (!this.#faulty) this.fault(error as Error);
      this.#faulty = true;
    }
  }
}
