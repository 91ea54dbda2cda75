import { ownCommand } from "../../platform/own_command.ts";
import { withTimeLimit } from "../../platform/time_limit.ts";
import type { Message, Order } from "./supervised.ts";

export interface WorkerOptions {
  /** Arguments of `svc`, including `--supervised`. */
  args: readonly string[];
  /** Passed to the worker as descriptor 3. */
  fd?: number;
  /** Called with each line of output; otherwise the worker shares our stdout and stderr. */
  onLine?: (line: string) => void;
  /** Whether it replaces a worker, which stops once this one is ready. */
  takesOver?: boolean;
  /** Whether it becomes ready only when it can serve: its database answers, and so on. */
  whenReady?: boolean;
  /** Environment variables to add to ours. */
  environment?: Readonly<Record<string, string>>;
}

/** A serving process, from its supervisor's view. */
export class Worker {
  /** Undefined when the process could not be started. */
  readonly #child: Bun.Subprocess | undefined;
  readonly #ready = Promise.withResolvers<boolean>();
  /** When it was started, by performance.now(). */
  readonly startedAt = performance.now();
  /** Resolves with a description of its exit, after its last output was read. */
  readonly ended: Promise<string>;
  /** Pending metrics requests, by question number. */
  readonly #asked = new Map<number, (answer: string) => void>();
  #questions = 0;

  constructor(options: WorkerOptions) {
    const { onLine } = options;
    try {
      this.#child = this.#spawn(options);
    } catch (cause) {
      // Temporarily out of memory, processes or descriptors: treat it as an immediate exit, so that it is retried.
      const { code, name } = cause as { code?: string; name: string };
      this.#ready.resolve(false);
      this.ended = Promise.resolve(`could not be started (${code ?? name})`);
      return;
    }
    const { exited, stdout, stderr } = this.#child;
    const read = onLine ? [stdout, stderr].map((stream) => lines(stream, onLine)) : [];
    this.ended = Promise.all([exited, ...read]).then(() => {
      this.#ready.resolve(false);
      return this.wasKilled
        ? `was killed by ${this.#child?.signalCode}`
        : `ended with exit code ${this.#child?.exitCode}`;
    });
  }

  /** Undefined when the process could not be started. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Whether a signal ended it. */
  get wasKilled(): boolean {
    return typeof this.#child?.signalCode === "string";
  }

  /** Whether it became ready; resolves once it is ready or has exited. */
  get ready(): Promise<boolean> {
    return this.#ready.promise;
  }

  /** All its metrics in Prometheus text format; undefined on timeout. */
  async metrics(milliseconds: number): Promise<string | undefined> {
    const { promise, resolve } = Promise.withResolvers<string>();
    this.#questions += 1;
    const question = this.#questions;
    this.#asked.set(question, resolve);
    try {
      this.order({ question });
      return await withTimeLimit(milliseconds, Promise.race([promise, this.ended.then(() => undefined)]));
    } finally {
      this.#asked.delete(question);
    }
  }

  /** Sends an order. A worker with a closed channel has exited, or stops because of that. */
  order(order: Order): void {
    try {
      this.#child?.send(order);
    } catch (cause) {
      if ((cause as { code?: string }).code !== "ERR_IPC_CHANNEL_CLOSED") throw cause;
    }
  }

  /** Stops it cleanly, or kills it after the timeout. */
  async stop(milliseconds: number): Promise<void> {
    const timer = setTimeout(() => this.#child?.kill("SIGKILL"), milliseconds);
    this.order("stop");
    await this.ended;
    clearTimeout(timer);
  }

  #spawn({ args, fd, takesOver, whenReady, onLine, environment }: WorkerOptions): Bun.Subprocess {
    // systemd's variables are meant for the process that it started, not for this one.
    const { LISTEN_FDS: _fds, LISTEN_PID: _pid, ...inherited } = process.env;
    const output = onLine ? "pipe" : "inherit";
    const succession = [
      ...(takesOver ? ["--takes-over"] : []),
      ...(takesOver && whenReady ? ["--when-ready"] : []),
    ];
    return Bun.spawn([...ownCommand(), ...args, ...succession], {
      env: { ...inherited, ...environment },
      stdio: ["ignore", output, output, ...(fd === undefined ? [] : [fd])],
      serialization: "json",
      ipc: (message: Message) => {
        if (message === "ready") this.#ready.resolve(true);
        else this.#asked.get(message.question)?.(message.metrics);
      },
    });
  }
}

async function lines(
  stream: ReadableStream<Uint8Array> | number | undefined | null,
  onLine: (line: string) => void,
): Promise<void> {
  if (!(stream instanceof ReadableStream)) return;
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of stream) {
    const parts = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = parts.pop() ?? "";
    parts.forEach(onLine);
  }
  if (rest !== "") onLine(rest);
}
