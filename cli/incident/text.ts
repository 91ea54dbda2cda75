import type { Environment } from "../../platform/variable.ts";
import type { Io } from "../io.ts";
import { hasColours } from "../screen.ts";
import { printable } from "../text.ts";
import { units, zonedTime } from "../when.ts";

// How the commands of `svc incident` show times, links and emphasis.

/** The largest unit of a time that has passed: `45s`, `5m`, `3h`, `12d`. */
export function ageText(from: Date, now: Date): string {
  const seconds = Math.max(0, Math.floor((now.getTime() - from.getTime()) / 1000));
  const [unit, size] = units.find(([, size]) => seconds >= size) ?? ["s", 1];
  return `${Math.floor(seconds / size)}${unit}`;
}

/** Relative on a terminal (`5m ago`, `in 2h`), RFC 3339 for other programs. */
export function whenText(instant: string, io: Pick<Io, "stdout" | "clock">): string {
  if (!io.stdout.isTTY) return instant;
  const at = new Date(instant);
  const now = io.clock.now();
  return at > now ? inText(at, now) : `${ageText(at, now)} ago`;
}

/** `in 2h`, also a moment after that was typed: an age is rounded down. */
export function inText(at: Date, now: Date): string {
  return `in ${ageText(now, new Date(at.getTime() + (at.getTime() - now.getTime()) / 100))}`;
}

/** The time that was meant by what was typed: `2026-11-20 14:05:00+01:00 (5m ago)`. */
export function atText(at: Date, { clock }: Pick<Io, "clock">): string {
  const now = clock.now();
  return `${zonedTime(at)} (${at > now ? inText(at, now) : `${ageText(at, now)} ago`})`;
}

/** An age for a column: relative on a terminal, RFC 3339 for other programs. */
export function ageColumn(instant: string, io: Pick<Io, "stdout" | "clock">): string {
  return io.stdout.isTTY ? ageText(new Date(instant), io.clock.now()) : instant;
}

export type Style = "bold" | "dim" | "red" | "yellow" | "green";
const codes: Record<Style, string> = { bold: "1", dim: "2", red: "31", yellow: "33", green: "32" };

/** Emphasis that carries no meaning of its own: nothing without a terminal, with NO_COLOR or on a dumb terminal. */
export function stylesOf({ stdout, env }: Pick<Io, "stdout" | "env">) {
  const isColourful = hasColours(stdout, env);
  return (text: string, style: Style | undefined) =>
    isColourful && style !== undefined ? `\x1b[${codes[style]}m${text}\x1b[0m` : text;
}

/**
 * A text that opens a URL on a terminal that can (OSC 8). Others would hide the URL: they get the text and the URL, and so
 * do other programs.
 */
export function linkText(text: string, url: string, { stdout, env }: Pick<Io, "stdout" | "env">): string {
  const target = URL.parse(url);
  if (target === null || !/^https?:$/.test(target.protocol)) return text;
  if (!stdout.isTTY || !opensLinks(env)) return text === target.href ? text : `${text} ${target.href}`;
  return `\x1b]8;;${target.href}\x1b\\${text}\x1b]8;;\x1b\\`;
}

/** Whether the terminal is known to open links. A multiplexer may drop them, whatever it runs in. */
function opensLinks(env: Environment): boolean {
  const { TERM = "", TERM_PROGRAM = "", VTE_VERSION, WT_SESSION, KONSOLE_VERSION } = env;
  if (/^(dumb|linux|screen|tmux)/.test(TERM) || env.TMUX || env.STY) return false;
  if (/^(xterm-kitty|xterm-ghostty|alacritty|foot|wezterm)/.test(TERM)) return true;
  if (/^(iTerm\.app|WezTerm|vscode|ghostty|Hyper|rio|Tabby)$/.test(TERM_PROGRAM)) return true;
  return Number(VTE_VERSION) >= 5000 || Boolean(WT_SESSION) || Number(KONSOLE_VERSION) >= 201_200;
}

/** The title in a line or a table, where a word says that not everybody may read the incident. */
export function titleOf(
  { title, visibility }: { title: string; visibility?: string },
  mostCharacters?: number,
): string {
  return `${visibility === undefined || visibility === "Open" ? "" : `[${printable(visibility, 40)}] `}${printable(title, mostCharacters)}`;
}

/** A server of a newer release may know more. */
export const statusStyle: Readonly<Record<string, Style | undefined>> = {
  Active: "red",
  Stable: "yellow",
  Closed: "green",
};
