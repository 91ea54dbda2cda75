import { ownCommand } from "../../platform/own_command.ts";
import type { Message, Order } from "./supervised.ts";

export interface WorkerOptions {
  /** Arguments of `svc`, among them `--supervised`. */
  args: readonly string[];
  /** Given to the worker as its descriptor 3. */
  fd?: number;
  /** Called with each line that it says; without it, its words go where ours go. */
  onLine?: (line: string) => void;
  /** Whether it takes the place of another one, which goes as soon as this one is ready. */
  takesOver?: boolean;
  /** Whether it then becomes ready only when it can serve: its database answers, and so on. */
  whenReady?: boolean;
  /** Variables beside ours. */
  environment?: Readonly<Record<string, string>>;
}

/** A process that serves, as its supervisor sees it. */
export class Worker {
  /** None where the system had nothing left for one. */
  readonly #child: Bun.Subprocess | undefined;
  readonly #ready = Promise.withResolvers<boolean>();
  /** When it was started, in milliseconds of performance.now(). */
  readonly startedAt = performance.now();
  /** Resolves, with how it ended, when it has and its last words were read. */
  readonly ended: Promise<string>;
  #wantsReplacement = () => {};
  /** By the number of the question. */
  readonly #asked = new Map<number, (answer: string | undefined) => void>();
  #questions = 0;

  constructor(options: WorkerOptions) {
    const { onLine } = options;
    try {
      this.#child = this.#spawn(options);
    } catch (cause) {
      // Out of memory, processes or descriptors for a moment: as if it had died at once, and whoever tends it tries again.
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

  /** Undefined when there is no process, because there could not be one. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Whether a signal has ended it. */
  get wasKilled(): boolean {
    return typeof this.#child?.signalCode === "string";
  }

  /** Whether it came to answer requests, known as soon as it does or has ended. */
  get ready(): Promise<boolean> {
    return this.#ready.promise;
  }

  onWantsReplacement(replace: () => void): void {
    this.#wantsReplacement = replace;
  }

  /** All its metrics, in the text format of Prometheus; undefined when it does not tell them in time. */
  async metrics(milliseconds: number): Promise<string | undefined> {
    const { promise, resolve } = Promise.withResolvers<string | undefined>();
    this.#questions += 1;
    const question = this.#questions;
    this.#asked.set(question, resolve);
    const timer = setTimeout(resolve, milliseconds, undefined);
    try {
      this.order({ question });
      return await Promise.race([promise, this.ended.then(() => undefined)]);
    } finally {
      clearTimeout(timer);
      this.#asked.delete(question);
    }
  }

  /** Sends an order to one that hears it: whose channel is closed has gone, or stops by that itself. */
  order(order: Order): void {
    try {
      this.#child?.send(order);
    } catch (cause) {
      if ((cause as { code?: string }).code !== "ERR_IPC_CHANNEL_CLOSED") throw cause;
    }
  }

  /** Ends it in order, and by force when the time is over. */
  async stop(milliseconds: number): Promise<void> {
    const timer = setTimeout(() => this.#child?.kill("SIGKILL"), milliseconds);
    this.order("stop");
    await this.ended;
    clearTimeout(timer);
  }

  #spawn({ args, fd, takesOver, whenReady, onLine, environment }: WorkerOptions): Bun.Subprocess {
    // systemd speaks to the process that it has started, and that is not this one.
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
        else if (message === "replace") this.#wantsReplacement();
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
