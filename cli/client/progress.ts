import type { WriteStream } from "node:tty";
import type { Environment } from "../../platform/variable.ts";
import type { Io, Output } from "../io.ts";
import { printable } from "../text.ts";

/** What the person sees while they are waited for. */
export interface Progress {
  /** Says something in between, without tearing the spinner. */
  note(line: string): void;
  stop(): void;
}

/**
 * A spinner with the time left, on a terminal; a plain line elsewhere.
 * @param deadline when the waiting ends at the latest
 */
export async function startProgress(io: Io, text: string, deadline: Date): Promise<Progress> {
  const note = (line: string) => void io.stderr.write(`${printable(line)}\n`);
  const label = () => `${text}, ${timeLeft(deadline.getTime() - io.clock.now().getTime())} left`;
  if (!canSpin(io.stderr, io.env)) {
    note(`${label()}.`);
    return { note, stop: () => {} };
  }
  const { default: ora } = await import("ora");
  const stream = io.stderr as WriteStream;
  // As it is now: ora takes what is written by its own `write` for somebody else's line.
  const write = stream.write.bind(stream);
  const spinner = ora({
    text: label(),
    stream,
    // It would put the terminal into raw mode, where Ctrl-C is a character and no signal.
    discardStdin: false,
    isEnabled: true,
    color: io.env.NO_COLOR ? false : "cyan",
  });
  const clear = spinner.clear.bind(spinner);
  let columns = stream.columns;
  // ora clears as many rows as its line had when it was written; in a narrower terminal it has more.
  spinner.clear = () => {
    const width = spinner.frame().replace(/\x1b\[[0-9;]*m/g, "").length;
    const more = Math.ceil(width / stream.columns) - Math.ceil(width / columns);
    if (more > 0) write("\r\x1b[0K\x1b[1A".repeat(more));
    columns = stream.columns;
    return clear();
  };
  spinner.start();
  const ticker = setInterval(() => {
    spinner.text = label();
  }, 1000);
  return {
    note,
    stop() {
      clearInterval(ticker);
      spinner.stop();
    },
  };
}

/** On a terminal of no width ora never stops writing (it divides by the width to count its lines). */
export function canSpin(output: Output, env: Environment): boolean {
  return output.isTTY === true && (output.columns ?? 0) > 0 && env.TERM !== "dumb";
}

/** `1:05`, and never less than `0:00`. */
export function timeLeft(milliseconds: number): string {
  const seconds = Math.max(0, Math.ceil(milliseconds / 1000));
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}
