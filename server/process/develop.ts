import { join } from "node:path";
import { prettyFactory } from "pino-pretty";
import { hostInUrl } from "../../platform/address.ts";
import { stopSignal } from "../../platform/stop_signal.ts";
import { errorPage } from "./error_page.ts";
import { onceMore } from "./supervise.ts";
import { watchFiles } from "./watch.ts";
import { Worker } from "./worker.ts";

export interface DevelopOptions {
  /** Arguments of `svc` for a serving process. */
  args: readonly string[];
  host: string;
  port: number;
  colour: boolean;
  /** A process that is not ready within this time is stuck. */
  startSeconds: number;
}

const root = join(import.meta.dir, "..", "..");
const watched = ["server", "web", "core", "platform", "plugins", "drizzle", ".env"].map((path) =>
  join(root, path),
);
const graceMilliseconds = 2000;
/** How many lines of a failed process the page shows. */
const keptLines = 200;

/**
 * Serves until SIGINT or SIGTERM, and replaces the serving process when a source file changes: the old one answers
 * until the new one is ready. If the new one fails, its output is shown on the port until the next change.
 */
export async function develop(options: DevelopOptions): Promise<void> {
  const stop = stopSignal();
  const development = new Development(options);
  const again = onceMore(
    () => development.restart(),
    () => development.say("the new process cannot be started"),
  );
  using _watch = watchFiles([...watched, join(process.cwd(), ".env")], () => {
    development.say("a file has changed");
    again();
  });
  again();
  await stop;
  await development.stop();
}

class Development {
  #worker: Worker | undefined;
  #page: Bun.Server<unknown> | undefined;
  #restarting: Promise<void> = Promise.resolve();
  readonly #stopped = Promise.withResolvers<false>();
  #stopping = false;
  readonly #pretty: (line: string) => string;

  constructor(private readonly options: DevelopOptions) {
    const translateTime = "SYS:HH:MM:ss.l";
    this.#pretty = prettyFactory({ colorize: options.colour, translateTime, singleLine: true });
  }

  say(text: string): void {
    process.stderr.write(`svc: ${text}\n`);
  }

  restart(): Promise<void> {
    this.#restarting = this.#replace();
    return this.#restarting;
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    this.#stopped.resolve(false);
    await this.#restarting;
    await Promise.all([this.#page?.stop(true), this.#worker?.stop(graceMilliseconds)]);
  }

  async #replace(): Promise<void> {
    if (this.#stopping) return;
    const output: string[] = [];
    const next = new Worker({
      args: this.options.args,
      takesOver: true,
      // Errors are shown to the developer, so they may contain all details.
      environment: { SVC_DEBUG: "1" },
      onLine: (line) => {
        output.push(line);
        if (output.length > keptLines) output.shift();
        process.stderr.write(line.startsWith("{") ? this.#pretty(line) : `${line}\n`);
      },
    });
    const began = performance.now();
    const { startSeconds } = this.options;
    let late: string | undefined;
    const timer = setTimeout(() => {
      late = `did not answer within ${startSeconds} s`;
      void next.stop(graceMilliseconds);
    }, startSeconds * 1000);
    const ready = await Promise.race([next.ready, this.#stopped.promise]);
    clearTimeout(timer);
    const old = this.#worker;
    this.#worker = next;
    if (ready) {
      await this.#page?.stop(true);
      this.#page = undefined;
      const { host, port } = this.options;
      this.say(`serving on http://${hostInUrl(host)}:${port} (${Math.round(performance.now() - began)} ms)`);
      void next.ended.then((how) => this.#worker === next && this.#failed(how, output));
    } else if (!this.#stopping) {
      const how = await next.ended;
      this.#failed(late ?? how, output);
    }
    await old?.stop(graceMilliseconds);
  }

  #failed(how: string, output: readonly string[]): void {
    if (this.#stopping) return;
    this.say(`the server ${how}; waiting for a change`);
    this.#page?.stop(true);
    this.#page = errorPage(this.options, how, output);
  }
}
