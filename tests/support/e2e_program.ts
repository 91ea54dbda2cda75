import { join } from "node:path";
import { until, within } from "./e2e_until.ts";

const main = join(import.meta.dir, "../../cli/main.ts");
/** More than any command has to say; what writes without end is stopped here. */
const floodCharacters = 1_000_000;
/** KiB that a process may have as data: a command that loops must not take the machine with it. */
const dataLimit = 4_000_000;

export interface ProgramOptions {
  /** The whole environment: what a developer has set in the shell must not decide about a test. */
  env: Record<string, string | undefined>;
  cwd: string;
  /** On a pseudo-terminal of so many columns; otherwise stdout and stderr are pipes. */
  columns?: number;
}

/** `svc` as a process of its own, and everything that it has written. */
export class Program {
  stdout = "";
  stderr = "";
  /** What a terminal shows; both streams in one. */
  screen = "";
  readonly #child: ReturnType<typeof spawn>;
  readonly #drained: Promise<unknown>;

  constructor(
    readonly args: readonly string[],
    options: ProgramOptions,
  ) {
    const screen = new TextDecoder();
    this.#child = spawn(args, options, (data) => {
      this.#take("screen", screen.decode(data, { stream: true }));
    });
    const { stdout, stderr } = this.#child;
    this.#drained = Promise.all([stdout && this.#follow("stdout", stdout), stderr && this.#follow("stderr", stderr)]);
  }

  get pid(): number {
    return this.#child.pid;
  }

  /** Everything that it has written so far, wherever. */
  get output(): string {
    return this.stdout + this.stderr + this.screen;
  }

  /** Waits until it has written something. */
  async says(pattern: RegExp, seconds?: number): Promise<RegExpMatchArray> {
    const name = `\`svc ${this.args.join(" ")}\` to say ${pattern}`;
    const match = () => this.output.match(pattern);
    return until(name, () => {
      const found = match();
      if (!found && this.#child.exitCode !== null && this.#over) throw new Error(`${name}; it ended:\n${this.output}`);
      return found;
    }, seconds).catch((error: Error) => {
      throw new Error(`${error.message}\n--- it said\n${this.output}`);
    });
  }

  /** The exit code, with all output read; null for a process that a signal ended. */
  async exit(seconds?: number): Promise<number | null> {
    await within(`the end of \`svc ${this.args.join(" ")}\``, this.#child.exited, seconds);
    await within("the rest of its output", this.#drained, seconds);
    return this.#child.exitCode;
  }

  press(keys: string): void {
    this.#child.terminal!.write(keys);
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill("SIGTERM");
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), 5000);
    await this.#child.exited;
    clearTimeout(timer);
    this.#child.terminal?.close();
  }

  get #over(): boolean {
    return this.#child.terminal === undefined || this.#child.terminal.closed || this.#endedFor(1000);
  }

  #endedAt: number | undefined;
  #endedFor(milliseconds: number): boolean {
    this.#endedAt ??= performance.now();
    return performance.now() - this.#endedAt > milliseconds;
  }

  async #follow(stream: "stdout" | "stderr", source: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    for await (const chunk of source) this.#take(stream, decoder.decode(chunk, { stream: true }));
  }

  #take(stream: "stdout" | "stderr" | "screen", text: string): void {
    if (this[stream].length > floodCharacters) this.#child.kill("SIGKILL");
    else this[stream] += text;
  }
}

function spawn(args: readonly string[], { env, cwd, columns }: ProgramOptions, data: (data: Uint8Array) => void) {
  const onTerminal = columns !== undefined;
  // Bun itself takes no width of 0, which some terminals report before they know their size.
  const prepare = `ulimit -d ${dataLimit}; ${onTerminal ? `stty cols ${columns};` : ""} exec "$@"`;
  const command = ["sh", "-c", prepare, "sh", process.execPath, main, ...args];
  const common = { env, cwd };
  if (!onTerminal) return Bun.spawn(command, { ...common, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const terminal = { cols: 80, rows: 24, data: (_terminal: unknown, bytes: Uint8Array) => data(bytes) };
  return Bun.spawn(command, { ...common, terminal });
}
