import type { WriteStream } from "node:tty";
import type { Io } from "./io.ts";
import { canDraw } from "./screen.ts";
import { printable } from "./text.ts";

/** The display while svc waits for the user. */
export interface Progress {
  /** Prints a line without breaking the spinner. */
  note(line: string): void;
  /** Shows another text, or prints it as another line. */
  change(text: string): void;
  stop(): void;
}

/**
 * A spinner with the remaining time on a terminal; otherwise a plain line.
 * @param deadline the latest end of the wait
 */
export async function startProgress(io: Io, text: string, deadline: Date): Promise<Progress> {
  const note = (line: string) => void io.stderr.write(`${printable(line)}\n`);
  let current = text;
  const label = () => `${current}, ${timeLeft(deadline.getTime() - io.clock.now().getTime())} left`;
  if (!canDraw(io.stderr, io.env)) {
    note(`${label()}.`);
    const change = (next: string) => {
      current = next;
      note(`${label()}.`);
    };
    return { note, change, stop: () => {} };
  }
  const { default: ora } = await import("ora");
  const stream = io.stderr as WriteStream;
  // The current `write`, because ora treats output through its own `write` as another program's line.
  const write = stream.write.bind(stream);
  const spinner = ora({
    text: label(),
    stream,
    // It would set the terminal to raw mode, in which Ctrl-C is a character instead of a signal.
    discardStdin: false,
    isEnabled: true,
    color: io.env.NO_COLOR ? false : "cyan",
  });
  const clear = spinner.clear.bind(spinner);
  let columns = stream.columns;
  // ora clears as many rows as its line had when it was written; in a narrower terminal, the line has more.
  spinner.clear = () => {
    const width = spinner.frame().replace(/\x1b\[[0-9;]*m/g, "").length;
    const more = Math.ceil(width / stream.columns) - Math.ceil(width / columns);
    if (more > 0) write("\r\x1b[0K\x1b[1A".repeat(more));
    columns = stream.columns;
    return clear();
  };
  // The shell needs the cursor.
  const stopSuspending = io.onSuspend(
    () => spinner.stop(),
    () => spinner.start(),
  );
  spinner.start();
  const ticker = setInterval(() => {
    spinner.text = label();
  }, 1000);
  return {
    note,
    change(next) {
      current = next;
      spinner.text = label();
    },
    stop() {
      stopSuspending();
      clearInterval(ticker);
      spinner.stop();
    },
  };
}

/** `1:05`, `4:00:00`, and never less than `0:00`. */
export function timeLeft(milliseconds: number): string {
  const seconds = Math.max(0, Math.ceil(milliseconds / 1000));
  const minutes = Math.floor(seconds / 60);
  const two = (number: number) => String(number).padStart(2, "0");
  const whole = minutes < 60 ? minutes : `${Math.floor(minutes / 60)}:${two(minutes % 60)}`;
  return `${whole}:${two(seconds % 60)}`;
}
