import { Value } from "@sinclair/typebox/value";
import { bunProgram } from "../../platform/own_command.ts";
import type { Environment } from "../../platform/variable.ts";
import type { PluginLog } from "./define.ts";
import { type Fault, fromHost, type Request, type ToHost, TooLarge } from "./protocol.ts";

export interface ProcessOptions {
  /** The working directory. */
  directory: string;
  environment: Environment;
  /** MiB of data that it may allocate. */
  memory: number;
  log: (level: keyof PluginLog, facts: object, message: string) => void;
}

/** All that a package sees of the environment. It gets its configuration in messages. */
const passedOn = new Set([
  "PATH",
  "HOME",
  "USER",
  "TMPDIR",
  "TZ",
  "LANG",
  "LC_ALL",
  "LC_CTYPE",
  "HTTP_PROXY",
  "HTTPS_PROXY",
  "ALL_PROXY",
  "NO_PROXY",
  "NODE_EXTRA_CA_CERTS",
  "SSL_CERT_FILE",
  "SSL_CERT_DIR",
  "BUN_RUNTIME_TRANSPILER_CACHE_PATH",
]);

/** How long a process may take to stop a cancelled call before it is killed. */
const graceMilliseconds = 1000;

/** The process ended before it answered. */
export class ProcessEnded extends Error {
  constructor(readonly detail: string) {
    super(detail);
  }
}

/** What a plugin threw. `stack` holds only frames. */
class PluginFault extends Error {
  readonly detail: string;
  readonly permanent: boolean;
  readonly retryAfter: number | undefined;
  readonly field: string | undefined;

  constructor({ detail, permanent, retryAfter, field, frames }: Fault) {
    super();
    this.detail = detail;
    this.permanent = permanent;
    this.retryAfter = retryAfter;
    this.field = field;
    this.stack = frames.join("\n");
  }
}

/** A function is not plain data, so the answer's check rejects it. */
const invalidAnswer = () => {};

interface Pending {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

/**
 * The process in which a package runs, so that a loop, an allocation or an exit affects nothing else. A thread would
 * not do: its allocations count against the whole process. The process ends when this one does, even by SIGKILL.
 */
export class PluginProcess {
  readonly #child: Bun.Subprocess;
  readonly #pending = new Map<number, Pending>();
  readonly #log: ProcessOptions["log"];
  #lastId = 0;
  #end: string | undefined;
  readonly startedAt = performance.now();
  idleSince = this.startedAt;
  /** How many calls it has run. */
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
      // Its output could be anything of any size: `log` is for messages. It gets its own process group, so that the
      // processes it starts end with it.
      detached: true,
      stdio: ["ignore", "ignore", "ignore"],
      serialization: "advanced",
      ipc: (message) => this.#receive(message),
      onExit: ({ signalCode }, code) => this.#ended(code, signalCode, memory),
    });
    // Must not keep svc running.
    this.#child.unref();
  }

  get pid(): number {
    return this.#child.pid;
  }

  get alive(): boolean {
    return this.#end === undefined;
  }

  /**
   * Sends a request. When `signal` aborts, a call is cancelled and has a moment to stop. Any other request, or a call
   * that does not stop, ends the process.
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
      // It has just ended: onExit rejects the pending requests.
    }
  }

  #receive(message: unknown): void {
    // Ignores messages that are not from host.ts.
    if (!Value.Check(fromHost, message)) return;
    if ("level" in message) {
      this.#log(message.level, parsed(message.facts) as object, message.message);
      return;
    }
    const pending = this.#pending.get(message.id);
    if (!pending) return;
    this.#pending.delete(message.id);
    if (message.outcome === "fault") pending.reject(new PluginFault(message.fault));
    else if (message.outcome === "invalid_answer") pending.resolve(invalidAnswer);
    else if (message.outcome === "too_large") pending.resolve(new TooLarge(message));
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
    return invalidAnswer;
  }
}
