import { join } from "node:path";
import type { Backup } from "../../drizzle/backup/dump.ts";
import type { OnProgress, Progress } from "../../drizzle/backup/progress.ts";
import { Unavailable } from "../../platform/errors.ts";
import { Interrupted } from "../errors.ts";
import type { Io } from "../io.ts";
import { canDraw } from "../screen.ts";
import { printable } from "../text.ts";

/** The file that `dump` writes and `restore` reads, in the working directory. */
export const backupFile = "svc-backup.dump";

/**
 * The absolute path of that file.
 * @throws Unavailable if the working directory was deleted: `resolve` would silently use another one
 */
export function backupPath(): string {
  try {
    return join(process.cwd(), backupFile);
  } catch (error) {
    throw new Unavailable("The working directory no longer exists: change to another one", { cause: error });
  }
}

const redrawMilliseconds = 100;
/** Time to clean up after Ctrl-C; a moment is usually enough. */
const unwindSeconds = 5;

/** A progress line at the bottom of a terminal; nothing without one. */
export interface ProgressLine {
  progress: OnProgress;
  /** Prints a line above the progress. */
  notice(message: string): void;
  clear(): void;
}

export function progressLine({ stderr, env }: Pick<Io, "stderr" | "env">): ProgressLine {
  const clear = () => canDraw(stderr, env) && stderr.write("\r\x1b[K");
  const notice = (message: string) => {
    clear();
    stderr.write(`svc: ${printable(message)}\n`);
  };
  if (!canDraw(stderr, env)) return { progress: () => {}, notice, clear };
  let drawn = Number.NEGATIVE_INFINITY;
  let doing = "";
  const progress = (now: Progress) => {
    // Show a new step at once, but not every byte of a step.
    if (now.doing === doing && performance.now() - drawn < redrawMilliseconds) return;
    [drawn, doing] = [performance.now(), now.doing];
    // A line as wide as the terminal would wrap, and could not be cleared.
    stderr.write(`\r\x1b[K${printable(progressText(now), (stderr.columns ?? 80) - 2)}`);
  };
  return { progress, notice, clear };
}

/** `Dumping incident: 12.3 MB` */
export function progressText({ doing, table, bytes, of }: Progress): string {
  const what = doing.replace(/^./, (letter) => letter.toUpperCase());
  const size = bytes === undefined ? "" : `: ${sizeText(bytes)}`;
  const part = bytes !== undefined && of ? ` of ${sizeText(of)} (${Math.floor((100 * bytes) / of)} %)` : "";
  return `${what}${table === undefined ? "" : ` ${table}`}${size}${part}`;
}

/** `svc-backup.dump (12.3 MB, 41 tables, 12,345 rows, revision X)` */
export function backupText({ bytes, tables, rows, heads }: Backup): string {
  const count = (number: number, word: string) =>
    `${number.toLocaleString("en")} ${word}${number === 1 ? "" : "s"}`;
  const revision = heads.length === 0 ? "no revision" : `revision ${heads.join(", ")}`;
  return `${backupFile} (${sizeText(bytes)}, ${count(tables, "table")}, ${count(rows, "row")}, ${revision})`;
}

export function sizeText(bytes: number): string {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  let [size, unit] = [bytes, 0];
  while (size >= 999.5 && unit < units.length - 1) {
    size /= 1000;
    unit += 1;
  }
  return `${unit === 0 || size >= 99.95 ? Math.round(size) : size.toFixed(1)} ${units[unit]}`;
}

const signals = ["SIGTERM", "SIGHUP"] as const;

/**
 * Runs work that must clean up when it is interrupted: Ctrl-C, `kill` and a closed terminal abort its signal, and wait
 * until it has cleaned up.
 */
export async function stoppable<T>(
  io: Pick<Io, "interruptible">,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const killed = new AbortController();
  const handlers = signals.map((signal) => ({ signal, handle: () => killed.abort(new Interrupted()) }));
  for (const { signal, handle } of handlers) process.on(signal, handle);
  let running: Promise<unknown> = Promise.resolve();
  try {
    return await io.interruptible((signal) => {
      const result = work(AbortSignal.any([signal, killed.signal]));
      running = result.catch(() => {});
      return result;
    });
  } finally {
    await Promise.race([running, Bun.sleep(unwindSeconds * 1000)]);
    for (const { signal, handle } of handlers) process.removeListener(signal, handle);
  }
}
