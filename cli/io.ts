import { fstatSync } from "node:fs";
import { userInfo } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { type Clock, systemClock } from "../platform/clock.ts";
import type { Environment } from "../platform/variable.ts";
import { Interrupted } from "./errors.ts";

/** `process.stdout` and `process.stderr`, or a substitute in a test. */
export interface Output {
  /** `done` is called when the text was written, or with the reason why it was not. */
  write(text: string, done?: (error?: Error | null) => void): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
  on?(event: "resize" | "drain" | "error", listener: () => void): unknown;
  off?(event: "resize" | "drain" | "error", listener: () => void): unknown;
}

/** One of several things to choose from. */
export interface Choice<T> {
  value: T;
  label: string;
  hint?: string;
}

export type Fetch = (url: string, init: BunFetchRequestInit) => Promise<Response>;

/** The operating system's store of secrets. */
export interface Keychain {
  get(account: string): Promise<string | null>;
  set(account: string, secret: string): Promise<void>;
  delete(account: string): Promise<void>;
}

/** Starts a browser. `failed` settles, with the reason, only if none was started. */
export type OpenBrowser = (url: string, env: Environment) => { failed: Promise<string> };

/** How a program ended: with an exit code, by a signal, or it did not start. */
export type TerminalExit = { code: number } | { signal: string } | { failed: string };

/** Everything outside the process that a command uses, so that a test can replace it. */
export interface Io {
  env: Environment;
  /** `--certificate`: requests authenticate with the stored client certificate, not with the token. */
  certificate?: boolean;
  /** `--server` */
  server?: string;
  platform: NodeJS.Platform;
  stdout: Output;
  stderr: Output;
  clock: Clock;
  fetch: Fetch;
  keychain: Keychain;
  openBrowser: OpenBrowser;
  /** Asks the user for a line; undefined without a terminal (a pipe, a job), or at the end of the input. */
  ask(question: string): Promise<string | undefined>;
  /** Whether the user can be asked: a terminal for the input and for stderr. */
  canAsk(): boolean;
  /** Lets the user choose, on stderr. Only if `canAsk`. @throws Interrupted */
  choose<T>(question: string, choices: readonly Choice<T>[]): Promise<T>;
  /** Asks for a text that `fault` accepts. Only if `canAsk`. @throws Interrupted */
  askText(question: string, fault?: (text: string) => string | undefined): Promise<string>;
  /** Reads stdin to its end, or until there are more than `limit` bytes. */
  readStdin(limit: number): Promise<Uint8Array>;
  /**
   * Runs a command line of the user, such as `code --wait`, with more arguments, on this terminal until it ends. It gets
   * the terminal even if our own input or output is something else.
   */
  runOnTerminal(commandLine: string, args: readonly string[]): Promise<TerminalExit>;
  /**
   * Calls back for each key, without Enter and without showing it, until the returned function is called. Ctrl-C still
   * interrupts. Nothing without a terminal.
   */
  onKey(listener: (key: string) => void): () => void;
  /**
   * Calls back before a signal ends the process (SIGTERM, SIGHUP), or before it exits in any other way, until the
   * returned function is called.
   */
  onExit(listener: () => void): () => void;
  /**
   * Calls `before` when Ctrl-Z or SIGTSTP is about to suspend the process, and `after` when it resumes, until the returned
   * function is called.
   */
  onSuspend(before: () => void, after: () => void): () => void;
  /**
   * From now on, ends the process as soon as nobody can read its output any more. Without this, only the next write does,
   * and a command that waits may not write for hours.
   */
  endWithReader(): void;
  /** The name of the user in the operating system. */
  osUser(): string;
  /** Resolves after the time; rejects at once when the signal aborts. */
  sleep(milliseconds: number, signal: AbortSignal): Promise<void>;
  /**
   * Runs `work` so that Ctrl-C aborts its signal and rejects with `Interrupted`, without waiting for `work`: the
   * process exits at the first Ctrl-C.
   */
  interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T>;
}

/** The real implementation. */
export function systemIo(): Io {
  return {
    env: process.env,
    platform: process.platform,
    stdout: process.stdout,
    stderr: process.stderr,
    clock: systemClock,
    fetch: (url, init) => fetch(url, init),
    keychain: {
      get: (name) => Bun.secrets.get({ service: "svc", name }),
      set: (name, value) => Bun.secrets.set({ service: "svc", name, value }),
      delete: async (name) => void (await Bun.secrets.delete({ service: "svc", name })),
    },
    openBrowser: (url, env) => {
      const failed = import("./login/browser.ts").then(({ openBrowser }) => openBrowser(url, env));
      return { failed };
    },
    ask,
    canAsk: () => process.stdin.isTTY === true && process.stderr.isTTY === true,
    choose: async (question, choices) => (await import("./prompt.ts")).choose(question, choices),
    askText: async (question, fault) => (await import("./prompt.ts")).askText(question, fault),
    readStdin,
    runOnTerminal,
    onKey,
    onExit,
    onSuspend,
    endWithReader,
    osUser: () => {
      try {
        const { username } = userInfo();
        // Bun reads only USER, and answers this without it, as in a container or a cron job.
        return username === "unknown" ? (process.env.LOGNAME ?? "") : username;
      } catch {
        // A container may run with a user id without a name.
        return "";
      }
    },
    sleep,
    interruptible,
  };
}

async function sleep(milliseconds: number, signal: AbortSignal): Promise<void> {
  await delay(milliseconds, undefined, { signal }).catch(() => signal.throwIfAborted());
}

async function interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  const { promise: interrupted, reject } = Promise.withResolvers<never>();
  const onInterrupt = () => {
    reject(new Interrupted());
    controller.abort(new Interrupted());
  };
  // Not `once`: ora's signal-exit kills the process with the signal if it finds no listener but its own.
  process.on("SIGINT", onInterrupt);
  try {
    return await Promise.race([work(controller.signal), interrupted]);
  } finally {
    process.removeListener("SIGINT", onInterrupt);
  }
}

function onKey(listener: (key: string) => void): () => void {
  const { stdin } = process;
  if (!stdin.isTTY) return () => {};
  const onData = (data: Buffer) => {
    // In raw mode, Ctrl-C and Ctrl-Z are keys like any other.
    if (data.includes(ctrlC)) process.kill(process.pid, "SIGINT");
    else if (data.includes(ctrlZ)) suspendJob();
    else listener(data.toString());
  };
  stdin.setRawMode(true);
  stdin.on("data", onData);
  stdin.resume();
  const stop = () => {
    stopListening();
    stopSuspending();
    stdin.off("data", onData);
    stdin.setRawMode(false);
    stdin.pause();
  };
  // The shell may not repair a terminal that a killed program left in raw mode.
  const stopListening = onExit(stop);
  const stopSuspending = onSuspend(
    () => stdin.setRawMode(false),
    () => stdin.setRawMode(true),
  );
  return stop;
}

function onExit(listener: () => void): () => void {
  const onSignal = (signal: NodeJS.Signals) => {
    stop();
    listener();
    // The default action, which ends the process.
    process.kill(process.pid, signal);
  };
  const stop = () => {
    process.off("exit", listener);
    process.off("SIGTERM", onSignal);
    process.off("SIGHUP", onSignal);
  };
  process.on("exit", listener);
  process.on("SIGTERM", onSignal);
  process.on("SIGHUP", onSignal);
  return stop;
}

let isSuspending = false;
/** The process to stop, or 0 for its whole job. */
let stops = process.pid;

/**
 * Suspends this process, and what started it in the same job, such as npx. All stop at once: as soon as one has stopped, the
 * shell takes the terminal, and those that set its mode then are stopped a second time.
 */
function suspendJob(): void {
  stops = 0;
  process.kill(process.pid, "SIGTSTP");
}

function onSuspend(before: () => void, after: () => void): () => void {
  const onStop = () => {
    before();
    if (isSuspending) return;
    isSuspending = true;
    // After the other listeners.
    setImmediate(() => {
      isSuspending = false;
      process.kill(stops, "SIGSTOP");
      stops = process.pid;
    });
  };
  const onResume = () => {
    for (const output of [process.stdout, process.stderr]) refreshSize(output);
    after();
  };
  process.on("SIGTSTP", onStop);
  process.on("SIGCONT", onResume);
  return () => {
    process.off("SIGTSTP", onStop);
    process.off("SIGCONT", onResume);
  };
}

function endWithReader(): void {
  // Linux reports an error of a watched pipe when its last reader is gone, and Bun then closes the "connection". This was
  // not tried on other systems.
  if (process.platform !== "linux" || !fstatSync(1).isFIFO()) return;
  const socket = { close: () => process.exit(0), data: () => {} };
  // Bun's types have these options, but no `connect` that takes them.
  const options: Bun.FdSocketOptions = { fd: 1, socket };
  Bun.connect(options as never).catch(() => {});
}

/**
 * Reads the size of a terminal. Streams do that on SIGWINCH, which a suspended job does not get. The method is an internal
 * one of Node, which Bun has too.
 */
function refreshSize(output: object): void {
  (output as { _refreshSize?(): void })._refreshSize?.();
}

async function readStdin(limit: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of Bun.stdin.stream()) {
    chunks.push(chunk);
    size += chunk.byteLength;
    if (size > limit) break;
  }
  return Buffer.concat(chunks);
}

async function runOnTerminal(commandLine: string, args: readonly string[]): Promise<TerminalExit> {
  const { spawn } = await import("node:child_process");
  // The shell splits the command line as the user wrote it, and never reads the arguments.
  const [program, ...before] =
    process.platform === "win32"
      ? commandLine.split(/\s+/)
      : ["/bin/sh", "-c", `${commandLine} "$@"`, commandLine];
  // Ctrl-C is for the program: we wait for it.
  const ignore = () => {};
  process.on("SIGINT", ignore).on("SIGQUIT", ignore);
  try {
    const child = spawn(program!, [...before, ...args], { stdio: ["inherit", 2, "inherit"] });
    return await new Promise<TerminalExit>((resolve) => {
      child.on("error", (error: NodeJS.ErrnoException) => resolve({ failed: error.code ?? error.message }));
      child.on("close", (code, signal) => resolve(signal === null ? { code: code ?? 1 } : { signal }));
    });
  } finally {
    process.off("SIGINT", ignore).off("SIGQUIT", ignore);
  }
}

async function ask(question: string): Promise<string | undefined> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) return undefined;
  const { createInterface } = await import("node:readline");
  return whileTerminal(async () => {
    // On stderr, because stdout is for data.
    const lines = createInterface({ input: process.stdin, output: process.stderr });
    const { promise, resolve, reject } = Promise.withResolvers<string | undefined>();
    lines.question(question, resolve);
    lines.once("SIGINT", () => {
      process.stderr.write("\n");
      reject(new Interrupted());
    });
    lines.once("close", () => resolve(undefined));
    try {
      return await promise;
    } finally {
      lines.close();
    }
  });
}

const ctrlC = 3;
const ctrlZ = 26;
/** Ctrl-Q, which no prompt binds. */
const ignoredKey = 17;

/**
 * Waits for an answer of the user. Ctrl-Z suspends the job: readline would suspend only this process, and leave its input
 * paused after `fg`.
 *
 * @throws Interrupted if the terminal is gone: the prompt would never end (the signal may be ignored), and the process would
 * spin
 */
export async function whileTerminal<T>(ask: () => Promise<T>): Promise<T> {
  const { stdin } = process;
  const { promise, reject } = Promise.withResolvers<never>();
  const onEnd = () => reject(new Interrupted());
  // Before those of the prompt, which fail when the terminal is gone.
  stdin.on("end", onEnd).on("error", onEnd);
  const onData = (data: Buffer) => {
    const at = data.indexOf(ctrlZ);
    if (at < 0) return;
    data[at] = ignoredKey;
    suspendJob();
  };
  stdin.on("data", onData);
  const stopSuspending = onSuspend(
    () => stdin.setRawMode(false),
    () => stdin.setRawMode(true),
  );
  try {
    return await Promise.race([ask(), promise]);
  } finally {
    stopSuspending();
    stdin.off("data", onData).off("end", onEnd).off("error", onEnd);
  }
}
