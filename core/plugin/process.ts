import { Value } from "@sinclair/typebox/value";
import { bunProgram } from "../../platform/own_command.ts";
import type { Environment } from "../../platform/variable.ts";
import type { PluginLog } from "./define.ts";
import { type Fault, fromHost, type Request, type ToHost } from "./protocol.ts";

export interface ProcessOptions {
  /** The working directory. */
  directory: string;
  environment: Environment;
  /** MiB of data that it may allocate. */
  memory: number;
  log: (level: keyof PluginLog, facts: object, message: string) => void;
}

/** All that a package sees of the environment. Its configuration comes by messages. */
const passedOn = new Set([
  ...["PATH", "HOME", "USER", "TMPDIR", "TZ", "LANG", "LC_ALL", "LC_CTYPE"],
  ...["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"],
  ...["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR", "BUN_RUNTIME_TRANSPILER_CACHE_PATH"],
]);

/** Longer than this, a process that was told to stop a call does not go on with it. */
const graceMilliseconds = 1000;

/** The process has ended before it answered. */
export class ProcessEnded extends Error {
  constructor(readonly detail: string) {
    super(detail);
  }
}

/** What a plugin threw. `stack` holds frames alone. */
class PluginFault extends Error {
  readonly detail: string;
  readonly permanent: boolean;

  constructor({ detail, permanent, frames }: Fault) {
    super();
    this.detail = detail;
    this.permanent = permanent;
    this.stack = frames.join("\n");
  }
}

/** No data: what checks the answer says so. */
const nonsense = () => {};

interface Pending {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

/**
 * A process in which a package runs: what it does to itself (a loop, an allocation, an exit) happens to nothing else. A
 * thread would not do: what it allocates counts against the whole process. The process ends when this one ends, also by
 * SIGKILL.
 */
export class PluginProcess {
  readonly #child: Bun.Subprocess;
  readonly #pending = new Map<number, Pending>();
  readonly #log: ProcessOptions["log"];
  #lastId = 0;
  #end: string | undefined;
  readonly startedAt = performance.now();
  idleSince = this.startedAt;
  /** How many calls have begun in it. */
  calls = 0;
  /** The plugins that are set up in it. */
  readonly created = new Set<number>();

  constructor({ directory, environment, memory, log }: ProcessOptions) {
    this.#log = log;
    // Not RLIMIT_AS: JavaScriptCore reserves much more than it uses.
    const limits = 'ulimit -c 0; ulimit -d "$0"; exec "$@"';
    const [bun, ...flags] = bunProgram("core/plugin/host.ts");
    const env = Object.entries(environment).filter(([name]) => passedOn.has(name.toUpperCase()));
    this.#child = Bun.spawn(["/bin/sh", "-c", limits, String(memory * 1024), bun!, "--smol", ...flags], {
      cwd: directory,
      env: { ...Object.fromEntries(env), BUN_ENABLE_CRASH_REPORTING: "0" },
      // What it prints could be anything, and any amount of it: `log` is for telling something.
      // A process group of its own: what the package has started ends with it.
      detached: true,
      stdio: ["ignore", "ignore", "ignore"],
      serialization: "advanced",
      ipc: (message) => this.#hear(message),
      onExit: ({ signalCode }, code) => this.#ended(code, signalCode, memory),
    });
    // It must not keep svc from ending.
    this.#child.unref();
  }

  get pid(): number {
    return this.#child.pid;
  }

  get alive(): boolean {
    return this.#end === undefined;
  }

  /**
   * Asks for something. When `signal` aborts, a call is told so and has a moment to stop; anything else, and a call that
   * goes on, ends with the process.
   *
   * @throws ProcessEnded
   * @throws PluginFault
   */
  async request(request: Request, signal: AbortSignal): Promise<unknown> {
    if (this.#end !== undefined) throw new ProcessEnded(this.#end);
    const id = ++this.#lastId;
    const { promise, ...pending } = Promise.withResolvers<unknown>();
    this.#pending.set(id, pending);
    let timer: NodeJS.Timeout | undefined;
    const stop = () => {
      if (request.kind !== "call") return this.kill();
      this.#send({ kind: "abort", id });
      timer = setTimeout(() => this.kill(), graceMilliseconds);
    };
    signal.addEventListener("abort", stop, { once: true });
    this.#send({ ...request, id });
    if (signal.aborted) stop();
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", stop);
    }
  }

  kill(): void {
    this.#end ??= "its process was ended";
    try {
      process.kill(-this.#child.pid, "SIGKILL");
    } catch {
      // It has ended.
    }
    this.#rejectAll(this.#end);
  }

  #send(message: ToHost): void {
    try {
      this.#child.send(message);
    } catch {
      // It has just ended: onExit tells those who wait.
    }
  }

  #hear(message: unknown): void {
    // Whatever else it may be, it is not from host.ts.
    if (!Value.Check(fromHost, message)) return;
    if ("level" in message) {
      this.#log(message.level, parsed(message.facts) as object, message.message);
      return;
    }
    const pending = this.#pending.get(message.id);
    if (!pending) return;
    this.#pending.delete(message.id);
    if (message.outcome === "fault") pending.reject(new PluginFault(message.fault));
    else if (message.outcome === "nonsense") pending.resolve(nonsense);
    else pending.resolve(message.json === undefined ? undefined : parsed(message.json));
  }

  #ended(code: number | null, signal: string | number | null, memory: number): void {
    this.#end ??= signal
      ? `its process was ended by ${signal} (it may allocate ${memory} MiB: SVC_PLUGIN_MEMORY)`
      : `its process exited with code ${code}`;
    this.#rejectAll(this.#end);
  }

  #rejectAll(detail: string): void {
    for (const { reject } of this.#pending.values()) reject(new ProcessEnded(detail));
    this.#pending.clear();
  }
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return nonsense;
  }
}
