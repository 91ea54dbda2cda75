import { Unavailable } from "../platform/errors.ts";
import type { Environment } from "../platform/variable.ts";
import type { Io, Output } from "./io.ts";

// Draws on a terminal while something is watched: either lines that scroll above a status line, or the whole screen. Callers
// fit the text to the terminal, and remove control sequences that are not ours.

const clearBelow = "\x1b[J";
const hideCursor = "\x1b[?25l";
const showCursor = "\x1b[?25h";
// Terminals disagree about the width of some characters. With this, they cut a line that is too long.
const noWrap = "\x1b[?7l";
const wrap = "\x1b[?7h";
const enterScreen = `\x1b[?1049h${hideCursor}${noWrap}`;
const leaveScreen = `${wrap}${showCursor}\x1b[?1049l`;
/** A terminal that knows these shows everything between them at once. */
const beginUpdate = "\x1b[?2026h";
const endUpdate = "\x1b[?2026l";

/**
 * Whether lines can be replaced: a terminal that is not dumb and that knows its size. Without a width, ora would never stop
 * writing, because it divides by the width to count lines.
 */
export function canDraw({ isTTY, columns }: Output, { TERM }: Environment): boolean {
  return isTTY === true && (columns ?? 0) > 0 && TERM !== "dumb";
}

/** Whether colours and other emphasis may be used. */
export function hasColours({ isTTY }: Output, { TERM, NO_COLOR }: Environment): boolean {
  return isTTY === true && !NO_COLOR && TERM !== "dumb";
}

/** What is drawn while something is watched. */
export interface Display {
  /** Shows lines that stay. */
  print(lines: readonly string[]): void;
  /** Draws again what changes: with the time, or with the size of the terminal. */
  refresh(): void;
  /** Leaves the terminal as it was. May be called twice. */
  close(): void;
}

/** Lines that scroll, above a status line that is redrawn. `status` receives the available width. */
export function statusLine(io: Io, status: (width: number) => string): Display {
  const { stdout } = io;
  const width = () => Math.max(1, (stdout.columns ?? 80) - 1);
  let drawn = "";
  // Suspended: the shell has the terminal. A timer may be due before SIGCONT arrives.
  let isAway = false;
  const draw = (above: string, isResized = false) => {
    const line = isAway ? "" : status(width());
    if (above === "" && line === drawn && (isAway || !isResized)) return;
    // The cursor stays at the beginning, also if the terminal becomes narrower and wraps the line. To move it up over the
    // rows could erase lines above, since the terminal may have another width by then.
    const text = `${beginUpdate}\r${clearBelow}${above}${noWrap}${line}${wrap}\r${endUpdate}`;
    drawn = line;
    stdout.write(text);
  };
  const refresh = () => draw("");
  const enter = () => {
    isAway = false;
    refresh();
  };
  const leave = () => {
    // The terminal shows ^C and ^Z at the cursor.
    if (drawn !== "") draw("", true);
    isAway = true;
    stdout.write(drawn === "" ? "" : "\n");
    drawn = "";
  };
  const close = closing(io, { refresh: () => draw("", true), enter, leave, finish: () => {} });
  return { print: (lines) => draw(lines.map((line) => `${line}\n`).join("")), refresh, close };
}

/** The whole screen. `lines` receives the size, and `last` returns the text that stays on the terminal afterwards. */
export function fullScreen(
  io: Io,
  lines: (columns: number, rows: number) => readonly string[],
  last: () => readonly string[],
): Display {
  const { stdout } = io;
  // As above.
  let isAway = false;
  const refresh = () => {
    if (isAway) return;
    const rows = stdout.rows || 24;
    const shown = lines(stdout.columns || 80, rows).slice(0, rows);
    // Cleared first: afterwards, the cursor would be on the last character of a line that fills its row.
    const text = shown.map((line) => `\x1b[K${line}`).join("\r\n");
    const below = shown.length < rows ? `\r\n${clearBelow}` : "";
    stdout.write(`${beginUpdate}\x1b[H${text}${below}${endUpdate}`);
  };
  const enter = () => {
    isAway = false;
    stdout.write(enterScreen);
    refresh();
  };
  const finish = () => {
    for (const line of last()) stdout.write(`${line}\n`);
  };
  stdout.write(enterScreen);
  const leave = () => {
    isAway = true;
    stdout.write(leaveScreen);
  };
  const close = closing(io, { refresh, enter, leave, finish });
  return { print: refresh, refresh, close };
}

interface Steps {
  /** Draws again. */
  refresh(): void;
  /** Takes the terminal, also after a shell had it. */
  enter(): void;
  /** Gives it back. */
  leave(): void;
  /** At the end, after `leave`. */
  finish(): void;
}

/** Redraws when the size changes, and restores the terminal once at the end, whatever ends the process. */
function closing({ stdout, onExit, onSuspend }: Io, { refresh, enter, leave, finish }: Steps): () => void {
  const stopListening = onExit(() => close());
  const stopSuspending = onSuspend(leave, enter);
  stdout.on?.("resize", refresh);
  let isClosed = false;
  const close = () => {
    if (isClosed) return;
    isClosed = true;
    stdout.off?.("resize", refresh);
    stopListening();
    stopSuspending();
    leave();
    finish();
  };
  return close;
}

/** Writes, and waits until it was written. @throws Unavailable if it was not, instead of the end of the process */
export async function writeOut(stdout: Output, text: string): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<Error | null | undefined>();
  const ignore = () => {};
  stdout.on?.("error", ignore);
  stdout.write(text, resolve);
  const error: NodeJS.ErrnoException | null | undefined = await promise;
  // The event of the failure may still follow.
  if (error) throw new Unavailable(`cannot write the output (${error.code})`, { cause: error });
  stdout.off?.("error", ignore);
}

/** Writes, and waits until a slow reader has read what was written before. */
export async function writeSlowly(stdout: Output, text: string): Promise<void> {
  if (stdout.write(text) !== false || stdout.on === undefined) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  stdout.on("drain", resolve);
  await promise;
  stdout.off?.("drain", resolve);
}
