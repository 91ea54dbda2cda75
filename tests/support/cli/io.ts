import { afterAll } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Fetch, Io } from "../../../cli/io.ts";
import { run } from "../../../cli/run.ts";
import { systemClock } from "../../../platform/clock.ts";

/** An `Io` without side effects: it records output, its time passes only during sleeps, and nothing is random. */
export interface TestIo extends Io {
  readonly out: { stdout: string; stderr: string };
  /** The contents of the keychain. Undefined for a machine without one. */
  secrets: Map<string, string> | undefined;
  readonly opened: string[];
  readonly slept: number[];
  /** Presses Ctrl-C. */
  interrupt(): void;
}

export const NOW = new Date("2026-01-02T03:04:05Z");

const homes: string[] = [];
// For the file that imports this. `bun test` has no event for the end of the process.
afterAll(() => {
  for (const directory of homes.splice(0)) rmSync(directory, { recursive: true, force: true });
});

/** Creates a directory for XDG_CONFIG_HOME. */
export function configHome(): string {
  const directory = mkdtempSync(join(tmpdir(), "svc-cli-"));
  homes.push(directory);
  return directory;
}

export function testIo(overrides: Partial<Io> & { env?: Record<string, string> } = {}): TestIo {
  const out = { stdout: "", stderr: "" };
  const into = (stream: "stdout" | "stderr") => ({
    write: (text: string, done?: () => void) => {
      out[stream] += text;
      done?.();
    },
  });
  let now = NOW.getTime();
  let controller = new AbortController();
  const io: TestIo = {
    out,
    secrets: undefined,
    opened: [],
    slept: [],
    platform: "linux",
    stdout: into("stdout"),
    stderr: into("stderr"),
    clock: { now: () => new Date(now) },
    fetch: unexpectedFetch,
    keychain: {
      get: async (account) => keys().get(account) ?? null,
      set: async (account, secret) => void keys().set(account, secret),
      delete: async (account) => void keys().delete(account),
    },
    openBrowser: (url) => {
      io.opened.push(url);
      return { failed: new Promise(() => {}) };
    },
    ask: async () => undefined,
    canAsk: () => false,
    choose: async (question) => unexpectedQuestion(question),
    askText: async (question) => unexpectedQuestion(question),
    readStdin: async () => new Uint8Array(),
    runOnTerminal: async (commandLine) => {
      throw new Error(`unexpected program: ${commandLine}`);
    },
    onKey: () => () => {},
    onExit: () => () => {},
    onSuspend: () => () => {},
    endWithReader: () => {},
    osUser: () => "ada",
    sleep: async (milliseconds, signal) => {
      signal.throwIfAborted();
      io.slept.push(milliseconds);
      now += milliseconds;
    },
    interruptible: (work) => {
      controller = new AbortController();
      return work(controller.signal);
    },
    interrupt: () => controller.abort(),
    ...overrides,
    env: { XDG_CONFIG_HOME: configHome(), ...overrides.env },
  };
  const keys = () => {
    if (io.secrets === undefined) throw new Error("no keychain");
    return io.secrets;
  };
  return io;
}

/** Runs a command line in this process, with only `env` as its environment, and the real time. */
export async function runHere(args: readonly string[], env: Record<string, string> = {}) {
  const io = testIo({ env, clock: systemClock });
  const code = await run([...args], io);
  return { code, ...io.out };
}

/** A terminal of 80 columns for ora. `shown` is the output, with names for control sequences. */
export function fakeTerminal() {
  const shown: string[] = [];
  const names: Record<string, string> = { "\x1b[?25l": "<hide cursor>", "\x1b[?25h": "<show cursor>" };
  return {
    shown,
    isTTY: true,
    columns: 80 as number,
    write: (text: string) => void shown.push(names[text] ?? text),
    cursorTo: () => void shown.push("<start of line>"),
    clearLine: () => void shown.push("<clear line>"),
    moveCursor: () => {},
    once: () => {},
    off: () => {},
    removeListener: () => {},
  };
}

/** An unexpected request fails the test. */
const unexpectedFetch: Fetch = (url) => {
  throw new Error(`unexpected request to ${url}`);
};

function unexpectedQuestion(question: string): never {
  throw new Error(`unexpected question: ${question}`);
}

/** Returns the answers in turn, and then repeats the last one. */
export function script(
  ...answers: (Response | Error | ((url: string, init: BunFetchRequestInit) => Response))[]
): Fetch {
  let next = 0;
  return async (url, init) => {
    await undefined; // Like a network, it never answers before the caller continues.
    const answer = answers[Math.min(next++, answers.length - 1)]!;
    if (answer instanceof Error) throw answer;
    return answer instanceof Response ? answer.clone() : answer(url, init);
  };
}
