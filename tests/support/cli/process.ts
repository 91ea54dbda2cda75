import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TerminalScreen } from "./terminal_screen.ts";

/** Runs `svc` from source, like bin/svc.mjs, so that Bun does not read `.env`. */
export const sourceProgram: readonly string[] = [
  process.execPath,
  "--no-env-file",
  `--config=${join(import.meta.dir, "../../../bunfig.toml")}`,
  join(import.meta.dir, "../../../cli/main.ts"),
];

/**
 * The program that tests start: the executable that `npm test` builds (scripts/build_for_tests.ts) or, without one, as with
 * `bun test one.test.ts`, the source.
 */
export const testProgram: readonly string[] = process.env.SVC_TEST_PROGRAM
  ? [process.env.SVC_TEST_PROGRAM]
  : sourceProgram;

export interface Finished {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** Runs `svc` in a separate process with only `env` as its environment, and with `detached` in a new process group. */
export function spawnSvc(
  args: readonly string[],
  env: Record<string, string> = {},
  preload?: string,
  // Not in the clone, where a trial may be running.
  cwd = tmpdir(),
  detached = false,
) {
  // Only Bun supports preloading.
  const [bun, ...source] = sourceProgram;
  const program = preload ? [bun!, "--preload", preload, ...source] : testProgram;
  const child = Bun.spawn([...program, ...args], {
    env: { PATH: process.env.PATH, TZ: "UTC", ...env },
    cwd,
    detached,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const stdout = new Transcript();
  const stderr = new Transcript();
  const finished = (async (): Promise<Finished> => {
    await Promise.all([stdout.follow(child.stdout), stderr.follow(child.stderr)]);
    await child.exited;
    // `exited` resolves to 130 even for a process that the signal killed.
    return { code: child.exitCode, stdout: stdout.text, stderr: stderr.text };
  })();
  return {
    child,
    finished,
    /** The output on stderr so far. */
    said: () => stderr.text,
    says: (text: string) => stderr.shows((all) => all.includes(text)),
    prints: (text: string) => stdout.shows((all) => all.includes(text)),
  };
}

export async function svc(
  args: readonly string[],
  env?: Record<string, string>,
  cwd?: string,
): Promise<Finished> {
  return await spawnSvc(args, env, undefined, cwd).finished;
}

/** Runs `svc` on a pseudo-terminal, or a shell script in which it is `"$@"`. `picture` is the screen. */
export function svcOnTerminal(
  args: readonly string[],
  env: Record<string, string>,
  { script, cwd = tmpdir(), picture }: { script?: string; cwd?: string; picture?: TerminalScreen } = {},
) {
  const screen = new Transcript();
  const shell = script === undefined ? [] : ["bash", "-c", script, "bash"];
  const child = Bun.spawn([...shell, ...testProgram, ...args], {
    env: { PATH: process.env.PATH, TERM: "xterm-256color", TZ: "UTC", ...env },
    cwd,
    terminal: {
      cols: picture?.columns ?? 80,
      rows: picture?.height ?? 24,
      data: (_terminal, data) => screen.add(data, picture),
    },
  });
  return {
    child,
    output: () => screen.text,
    /** The exit code. Null for a process that a signal killed. */
    exitCode: async () => {
      await child.exited;
      return child.exitCode;
    },
    press: (keys: string) => child.terminal!.write(keys),
    shows: (pattern: RegExp) => screen.shows((all) => pattern.test(all)),
    /** Waits until the screen matches. */
    pictures: (pattern: RegExp) => screen.shows(() => pattern.test(picture!.text)),
    /** Resizes the terminal, which rewraps its lines before the program receives the signal. */
    resize: (width: number, height = picture!.height) => {
      picture!.resize(width, height);
      child.terminal!.resize(width, height);
    },
  };
}

/** Collects output, and waits for it. */
class Transcript {
  text = "";
  readonly #decoder = new TextDecoder();
  #watchers: (() => void)[] = [];

  add(data: Uint8Array, picture?: TerminalScreen): void {
    const text = this.#decoder.decode(data, { stream: true });
    this.text += text;
    picture?.write(text);
    for (const watch of [...this.#watchers]) watch();
  }

  async follow(stream: ReadableStream<Uint8Array>): Promise<void> {
    for await (const chunk of stream) this.add(chunk);
  }

  /** Resolves as soon as the text so far passes. */
  shows(passes: (text: string) => boolean): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const watch = () => {
      if (!passes(this.text)) return;
      this.#watchers = this.#watchers.filter((other) => other !== watch);
      resolve();
    };
    this.#watchers.push(watch);
    watch();
    return promise;
  }
}
