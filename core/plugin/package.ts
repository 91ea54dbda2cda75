import type { Clock } from "../../platform/clock.ts";
import type { PluginDeps, PluginLog } from "./define.ts";
import { type PluginType, pluginMethods } from "./methods.ts";
import { PluginProcess, ProcessEnded, type ProcessOptions } from "./process.ts";
import type { Described } from "./protocol.ts";

/** Further calls wait until one of these ends. */
const mostProcesses = 4;
const pingMilliseconds = 1000;

export interface PackageOptions extends Omit<ProcessOptions, "log"> {
  name: string;
  entry: string;
  log?: PluginLog;
  /** How long an idle process is kept, other than the one that is always kept. */
  spareMilliseconds?: number;
}

/**
 * A third-party package. Each call has a process to itself, so a loop, an allocation or an exit harms only that call.
 * One process is kept warm. Others are started when calls overlap.
 */
export class PluginPackage {
  /** Oldest first. The oldest is reused first, so that the others stay idle and can end. */
  readonly #idle: PluginProcess[] = [];
  readonly #busy = new Set<PluginProcess>();
  /** Calls that wait for a process, in order of arrival. */
  readonly #waiting: (() => void)[] = [];
  readonly #setups = new Map<number, { config: string; names: string[]; clock: Clock }>();
  readonly #spareMilliseconds: number;
  #closed = false;

  private constructor(private readonly options: PackageOptions) {
    this.#spareMilliseconds = options.spareMilliseconds ?? 30_000;
  }

  /**
   * Loads the package.
   * @returns what it exports, as checkPlugin takes it: plugins whose methods run in separate processes
   * @throws ProcessEnded if the package ends its process meanwhile, or `signal` aborts
   * @throws PluginFault with what it threw
   */
  static async load(
    options: PackageOptions,
    signal: AbortSignal,
  ): Promise<{ exported: unknown; opened: PluginPackage }> {
    const opened = new PluginPackage(options);
    const process = opened.#spawn();
    try {
      const described = (await process.request({ kind: "load", entry: options.entry }, signal)) as Described;
      opened.#returnToPool(process);
      return { exported: opened.#exported(described), opened };
    } catch (error) {
      opened.close();
      throw error;
    }
  }

  /** Whether any of its plugins is in use. */
  get used(): boolean {
    return this.#setups.size > 0;
  }

  close(): void {
    this.#closed = true;
    for (const process of [...this.#idle, ...this.#busy]) process.kill();
    this.#idle.length = 0;
    for (const wake of this.#waiting.splice(0)) wake();
  }

  #exported(described: Described): unknown {
    return described?.map((facts, plugin) => {
      if (facts === null) return null;
      const names = Object.keys(pluginMethods[facts.type as PluginType] ?? {});
      const create = (config: unknown, { clock, log }: PluginDeps) => {
        this.options.log ??= log;
        return this.#create(plugin, { config: JSON.stringify(config), names, clock });
      };
      return { ...facts, create: facts.create === true ? create : undefined };
    });
  }

  async #create(plugin: number, setup: { config: string; names: string[]; clock: Clock }): Promise<object> {
    this.#setups.set(plugin, setup);
    const never = new AbortController().signal;
    const process = await this.#take(never, false);
    try {
      const found = (await this.#setUp(process, plugin, never)) as string[];
      const methods = found.map((name) => [name, (call: Call) => this.#call(plugin, name, call)]);
      return Object.fromEntries(methods) as object;
    } finally {
      this.#returnToPool(process);
    }
  }

  async #setUp(process: PluginProcess, plugin: number, signal: AbortSignal): Promise<unknown> {
    const { config, names, clock } = this.#setups.get(plugin)!;
    const request = { kind: "create", plugin, config, names, clockOffset: offsetOf(clock) } as const;
    const found = await process.request(request, signal);
    process.created.add(plugin);
    return found;
  }

  async #call(plugin: number, method: string, { signal, ...input }: Call): Promise<unknown> {
    const json = JSON.stringify(input);
    for (let again = false; ; again = true) {
      const process = await this.#take(signal, again);
      const mayBeAnothers = process.calls > 0;
      try {
        if (!process.created.has(plugin)) await this.#setUp(process, plugin, signal);
        process.calls += 1;
        const clockOffset = offsetOf(this.#setups.get(plugin)!.clock);
        return await process.request({ kind: "call", plugin, method, input: json, clockOffset }, signal);
      } catch (error) {
        // Something that an earlier call left running may have ended it, e.g. a timer. Retry once, with the same key.
        if (!(error instanceof ProcessEnded) || !mayBeAnothers || again || signal.aborted) throw error;
      } finally {
        this.#returnToPool(process);
      }
    }
  }

  /** Returns an idle process. With `fresh`, one that has run no call yet. */
  async #take(signal: AbortSignal, fresh: boolean): Promise<PluginProcess> {
    for (;;) {
      if (this.#closed || signal.aborted) throw new ProcessEnded("it was not called: the work was cancelled");
      const idle = fresh ? undefined : this.#idle.shift();
      if (idle) {
        this.#busy.add(idle);
        if (await answers(idle)) return idle;
        idle.kill();
        this.#busy.delete(idle);
      } else if (this.#busy.size < mostProcesses) {
        const process = this.#spawn();
        try {
          await process.request({ kind: "load", entry: this.options.entry }, signal);
          return process;
        } catch (error) {
          this.#returnToPool(process);
          throw error;
        }
      } else {
        await this.#turn(signal);
      }
    }
  }

  /** Resolves when a process may be free, or when `signal` aborts. */
  async #turn(signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push(resolve);
    signal.addEventListener("abort", () => resolve(), { once: true });
    await promise;
    // A waiter that gave up passes its wake-up on.
    const at = this.#waiting.indexOf(resolve);
    if (at >= 0) this.#waiting.splice(at, 1);
    else if (signal.aborted) this.#waiting.shift()?.();
  }

  #spawn(): PluginProcess {
    const process = new PluginProcess({ ...this.options, log: (...line) => this.#log(...line) });
    this.#busy.add(process);
    return process;
  }

  #log(level: keyof PluginLog, facts: object, message: string): void {
    const { log, name } = this.options;
    log?.[level]({ package: name, ...facts }, message);
  }

  #returnToPool(process: PluginProcess): void {
    this.#busy.delete(process);
    if (process.alive && !this.#closed) {
      process.idleSince = performance.now();
      this.#idle.push(process);
      this.#idle.sort((a, b) => a.startedAt - b.startedAt);
      if (this.#idle.length > 1) setTimeout(() => this.#endSpares(), this.#spareMilliseconds).unref();
    }
    this.#waiting.shift()?.();
  }

  #endSpares(): void {
    const since = performance.now() - this.#spareMilliseconds;
    for (const process of this.#idle.slice(1)) {
      if (process.idleSince > since) continue;
      this.#idle.splice(this.#idle.indexOf(process), 1);
      process.kill();
    }
  }
}

type Call = { signal: AbortSignal } & Record<string, unknown>;

/** Whether its event loop is free: something that an earlier call left running may block it. */
async function answers(process: PluginProcess): Promise<boolean> {
  try {
    await process.request({ kind: "ping" }, AbortSignal.timeout(pingMilliseconds));
    return true;
  } catch {
    return false;
  }
}

/** A worker's clock is the database's, which is unknown until it is first read. */
function offsetOf(clock: Clock): number {
  try {
    return clock.now().getTime() - Date.now();
  } catch {
    return 0;
  }
}
