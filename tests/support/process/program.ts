import { testProgram } from "../cli/process.ts";
import { until, within } from "./until.ts";

/** More than any command prints. Endless output ends the process. */
const floodCharacters = 1_000_000;
/** The limit of a process's data in KiB, so that a looping command does not exhaust the machine. */
const dataLimit = 4_000_000;

export interface ProgramOptions {
  /** The whole environment, so that the developer's shell does not influence a test. */
  env: Record<string, string | undefined>;
  cwd: string;
  /** Runs on a pseudo-terminal with this many columns. Otherwise, stdout and stderr are pipes. */
  columns?: number;
}

/** `svc` as a separate process, and its output. */
export class Program {
  stdout = "";
  stderr = "";
  /** The output on a terminal, which combines both streams. */
  screen = "";
  readonly #name: string;
  readonly #child: Bun.Subprocess;
  /** The exit code, after all output has been read. */
  readonly #end: Promise<number | null>;
  #ended = false;

  constructor(args: readonly string[], { env, cwd, columns }: ProgramOptions) {
    this.#name = `\`svc ${args.join(" ")}\``;
    // Bun does not accept a width of 0, which some terminals report before they know their size.
    const prepare = `ulimit -d ${dataLimit}; ${columns === undefined ? "" : `stty cols ${columns}; `}exec "$@"`;
    const command = ["sh", "-c", prepare, "sh", ...testProgram, ...args];
    const drained =
      columns === undefined ? this.#onPipes(command, env, cwd) : this.#onTerminal(command, env, cwd);
    this.#child = drained.child;
    this.#end = Promise.all([this.#child.exited, drained.output]).then(() => {
      this.#ended = true;
      // `exited` resolves to 130 even for a process that the signal killed.
      return this.#child.exitCode;
    });
  }

  get pid(): number {
    return this.#child.pid;
  }

  /** All output so far, on any stream. */
  get output(): string {
    return this.stdout + this.stderr + this.screen;
  }

  /** Waits for this output. @throws if the process exits without it or takes too long */
  async says(pattern: RegExp, seconds?: number): Promise<RegExpMatchArray> {
    const look = () => {
      const found = this.output.match(pattern);
      if (!found && this.#ended) throw new Error("it ended");
      return found;
    };
    return until("it", look, seconds).catch((cause: Error) => {
      throw new Error(`${this.#name} did not say ${pattern}: ${cause.message}\n${this.output}`, { cause });
    });
  }

  /** The exit code, after all output has been read. Null for a process that a signal killed. */
  exit(seconds?: number): Promise<number | null> {
    return within(`the end of ${this.#name}`, this.#end, seconds);
  }

  /** Types on the terminal. */
  press(keys: string): void {
    this.#child.terminal!.write(keys);
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Stops it, by force if necessary. */
  async stop(): Promise<void> {
    this.#child.kill("SIGTERM");
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), 8000);
    await this.#child.exited;
    clearTimeout(timer);
    this.#child.terminal?.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  #onPipes(command: string[], env: ProgramOptions["env"], cwd: string) {
    const child = Bun.spawn(command, { env, cwd, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
    const follow = async (stream: "stdout" | "stderr") => {
      const decoder = new TextDecoder();
      for await (const chunk of child[stream]) this.#take(stream, decoder.decode(chunk, { stream: true }));
    };
    return { child, output: Promise.all([follow("stdout"), follow("stderr")]) };
  }

  #onTerminal(command: string[], env: ProgramOptions["env"], cwd: string) {
    const { promise: output, resolve: closed } = Promise.withResolvers<void>();
    const decoder = new TextDecoder();
    const child = Bun.spawn(command, {
      env,
      cwd,
      terminal: {
        data: (_terminal, data) => this.#take("screen", decoder.decode(data, { stream: true })),
        exit: () => closed(),
      },
    });
    return { child, output };
  }

  #take(stream: "stdout" | "stderr" | "screen", text: string): void {
    if (this[stream].length > floodCharacters) this.#child.kill("SIGKILL");
    else this[stream] += text;
  }
}
