import { keepsStatements } from "../drizzle/connection/database_address.ts";
import { databaseMissing } from "../drizzle/connection/database_url.ts";
import { watchPools } from "../drizzle/connection/telemetry.ts";
import type { PoolWatch } from "../drizzle/connection/watch.ts";
import type { Clock } from "../platform/clock.ts";
import { ConfigurationError } from "../platform/errors.ts";
import { createLog, type Log } from "../platform/log.ts";
import { openTelemetry, type Program, type Telemetry } from "../platform/telemetry/telemetry.ts";
import type { Environment } from "../platform/variable.ts";
import type { EventCounts } from "./audit.ts";
import { challengeCounter } from "./auth/challenge/outcomes.ts";
import { type Config, parseConfig } from "./config.ts";
import type { Context } from "./context.ts";
import type { Plugins } from "./plugin/choose.ts";
import type { Plugin } from "./plugin/define.ts";
import { observePlugins } from "./plugin/observe.ts";
import { openPlugins } from "./plugin/open.ts";
import { createRegistry, type PluginRegistry } from "./plugin/registry.ts";

/*
 * The composition root. `openParts` builds the server, the worker, the commands that inspect the application and the
 * tests: configuration, log, telemetry, connections, plugins, in this order.
 */

/** Nothing listens there: it stands in for a missing database address until that is reported. */
const nowhere = "postgres://127.0.0.1:1/";

/** How to reach the database. */
export interface DatabasePlace {
  url: string;
  poolSize: number;
  prepare: boolean;
  /** Whether the URL is that of a pooler. */
  pooled?: boolean;
  /** Observes the pool with this name and size. Only with telemetry. */
  watch?: (pool: string, size: number) => PoolWatch;
}

/** A program's connections. The worker replaces its own, so `db` is read each time. */
export interface Connected {
  readonly db: Context["db"];
  close(): Promise<void>;
}

export interface PartsOptions<C extends Connected> {
  environment: Environment;
  /** Replaces the one that is read from the environment. */
  config?: Config;
  /** Replaces the one from the configuration. */
  log?: Log;
  /** Replaces the one from the configuration, or the name under which a program reports, or none. */
  telemetry?: Telemetry | Program;
  clock: Clock;
  counts?: EventCounts;
  /** From plugins/builtin.ts, because core does not depend on plugins. */
  builtin: readonly Plugin[];
  /** Replaces those that the configuration selects. No package is then loaded. */
  plugins?: Plugins;
  connect: (place: DatabasePlace) => C;
}

export interface Parts<C, More> {
  context: Context;
  connections: C;
  /** All known plugins, selected or not. */
  registry: PluginRegistry;
  plugins: Plugins;
  more: More;
  /** Ends plugin processes and connections. The caller stops telemetry last. */
  close(): Promise<void>;
}

/**
 * Builds what every program needs. It connects to nothing: the database may still be down. `addMore` builds what only
 * one program needs, with `faults.collect`.
 *
 * @throws ConfigurationError with the faults of all parts
 */
export async function openParts<C extends Connected, More = undefined>(
  options: PartsOptions<C>,
  addMore?: (context: Context, faults: ConfigurationFaults) => Promise<More>,
): Promise<Parts<C, More>> {
  const { environment, clock, counts, builtin } = options;
  const parsed = options.config ? { config: options.config, faults: [] } : parseConfig(environment);
  const { config } = parsed;
  const faults = new ConfigurationFaults(parsed.faults);
  await faults.collect(() => {
    if (!config.databaseUrl) throw new ConfigurationError([databaseMissing]);
  });
  const log = options.log ?? createLog(config.logLevel);
  const { telemetry: given } = options;
  const named = typeof given === "string" && !faults.any ? given : undefined;
  const telemetry = typeof given === "object" ? given : named && (await openTelemetry(config, log, named));
  if (telemetry?.meter) challengeCounter(telemetry.meter);
  const connections = options.connect({
    url: config.databaseUrl ?? nowhere,
    poolSize: config.databasePoolSize,
    prepare: keepsStatements(config),
    pooled: config.databaseDirectUrl !== undefined,
    watch: telemetry && watchPools(telemetry),
  });
  const context: Context = {
    clock,
    config,
    log,
    telemetry,
    counts,
    get db() {
      return connections.db;
    },
  };
  let closePlugins = () => {};
  const close = async () => {
    closePlugins();
    await connections.close();
  };
  const open = async () => {
    if (options.plugins) {
      const registry = createRegistry([{ origin: "svc", exported: builtin, builtin: true }]);
      return { registry, plugins: options.plugins };
    }
    const opened = await openPlugins({
      config,
      environment,
      builtin,
      directory: process.cwd(),
      deps: { fetch: (url, init) => fetch(url, init), clock, log, context },
    });
    closePlugins = opened.close;
    return opened;
  };
  try {
    const more = (await addMore?.(context, faults)) as More;
    const opened = await faults.collect(open);
    faults.throwIfAny();
    const { registry } = opened;
    const plugins = telemetry ? observePlugins(opened.plugins, telemetry) : opened.plugins;
    return { context, connections, registry, plugins, more, close };
  } catch (error) {
    // Otherwise connections and processes would keep this process alive.
    await Promise.all([close(), telemetry?.stop()]);
    throw error;
  }
}

/** The variable that a fault is about. */
const nameIn = (fault: string) => /^[A-Z][A-Z0-9_]*/.exec(fault)?.[0] ?? fault;

/** The faults of a configuration, collected from all parts that read it and reported together. */
class ConfigurationFaults {
  constructor(private readonly faults: string[]) {}

  get any(): boolean {
    return this.faults.length > 0;
  }

  /**
   * Builds a part, or records why that failed, with one fault per variable. The result may be used only after
   * `throwIfAny`.
   */
  async collect<T>(build: () => T | Promise<T>): Promise<T> {
    try {
      return await build();
    } catch (error) {
      if (!(error instanceof ConfigurationError)) throw error;
      const known = new Set(this.faults.map(nameIn));
      this.faults.push(...error.faults.filter((fault) => !known.has(nameIn(fault))));
      return undefined as T;
    }
  }

  /** @throws ConfigurationError with every fault */
  throwIfAny(): void {
    if (this.any) throw new ConfigurationError(this.faults);
  }
}
