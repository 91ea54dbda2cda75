import { sql } from "drizzle-orm";
import { warnOfDisagreement } from "../core/agreement.ts";
import type { Config } from "../core/config.ts";
import { parseConfig } from "../core/config.ts";
import { ConfigurationFaults } from "../core/faults.ts";
import { observePlugins } from "../core/plugin/observe.ts";
import { openPlugins } from "../core/plugin/open.ts";
import { installUnhandledErrorHandlers } from "../core/plugin/unhandled.ts";
import { type DatabaseClock, databaseClock } from "../core/schedule/database_clock.ts";
import { behindPooler, keepsStatements } from "../drizzle/connection/database_address.ts";
import { databaseMissing } from "../drizzle/connection/database_url.ts";
import { isPooled, whichBackend } from "../drizzle/connection/pooler.ts";
import { watchPools } from "../drizzle/connection/telemetry.ts";
import { operatorsError, withoutQuery } from "../drizzle/database_error.ts";
import { assertServable, schemaStatus } from "../drizzle/revision/status.ts";
import { readEnvironment } from "../platform/environment.ts";
import { ConfigurationError } from "../platform/errors.ts";
import { createLog, type Log } from "../platform/log.ts";
import { openTelemetry, type Telemetry } from "../platform/telemetry/telemetry.ts";
import type { Environment } from "../platform/variable.ts";
import { builtinPlugins } from "../plugins/builtin.ts";
import { Connections } from "./connections.ts";
import type { WorkerDeps } from "./deps.ts";
import { ObservedSchedule } from "./metrics.ts";
import { Outage } from "./outage.ts";

import { DatabaseTime } from "./time.ts";

/** Nobody is asked there: it stands for a database address that is missing, until that is reported. */
const nowhere = "postgres://127.0.0.1:1/";

/** A dead worker's run waits for so long. */
const leaseSeconds = 30;

export interface OpenWorker extends WorkerDeps {
  telemetry?: Telemetry;
  close(): Promise<void>;
}

/**
 * Builds a worker from the environment, with real parts. A database that does not answer yet is waited for where
 * `patient`; undefined when `stop` aborts meanwhile. With `outlive`, what plugins throw while nobody waits ends no process.
 *
 * @throws ConfigurationError with every fault
 * @throws Conflict when the schema is not one that this release can work on
 * @throws Unavailable when the only address that it has is a pooler's
 */
export async function openWorker(
  options: { environment: Environment; patient: boolean; outlive?: boolean; clock?: DatabaseClock },
  stop: AbortSignal,
): Promise<OpenWorker | undefined> {
  const { patient, outlive = false, clock = databaseClock } = options;
  const environment = readEnvironment(options.environment);
  const parsed = parseConfig(environment);
  const { config } = parsed;
  const faults = new ConfigurationFaults(parsed.faults);
  await faults.collect(() => {
    if (!config.databaseUrl) throw new ConfigurationError([databaseMissing]);
  });
  const log = createLog(config.logLevel);
  const telemetry = faults.any ? undefined : await openTelemetry(config, log, "svc-scheduler");
  const poolWatch = telemetry && watchPools(telemetry);
  const connections = new Connections(config.databaseUrl ?? nowhere, config.databasePoolSize, poolWatch, {
    prepare: keepsStatements(config),
  });
  const calm = outlive ? installUnhandledErrorHandlers(log) : undefined;
  let opened: Awaited<ReturnType<typeof withPlugins>> | undefined;
  const close = async () => {
    opened?.closePlugins();
    await Promise.all([connections.close(), telemetry?.stop()]);
    calm?.();
  };
  try {
    opened = await faults.collect(() => withPlugins(connections, { config, environment, log, clock }));
    faults.throwIfAny();
    const mayBePooled = config.databaseDirectUrl !== undefined;
    if (!(await assertDatabase(connections, { log, patient, mayBePooled }, stop))) {
      await close();
      return undefined;
    }
    await warnOfDisagreement(
      { db: connections.schedule, config, log },
      // A task that somebody runs by hand is no member of the system.
      { role: "worker", record: patient },
    ).catch((error: unknown) => log.warn({ err: error }, "could not compare our settings with the others'"));
    const { closePlugins: _, ...deps } = opened;
    return { ...(telemetry ? observed(deps, telemetry) : deps), close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function withPlugins(
  connections: Connections,
  {
    config,
    environment,
    log,
    clock,
  }: { config: Config; environment: Environment; log: Log; clock: DatabaseClock },
): Promise<WorkerDeps & { closePlugins: () => void }> {
  const time = new DatabaseTime();
  const owner = crypto.randomUUID();
  const context = {
    ...{ clock: time, config, log },
    get db() {
      return connections.tasks;
    },
  };
  const { plugins, close: closePlugins } = await openPlugins({
    ...{ config, environment, builtin: builtinPlugins, directory: process.cwd() },
    deps: { fetch: (url, init) => fetch(url, init), clock: time, log, context },
  });
  return {
    ...{ config, log, plugins, time, closePlugins },
    schedule: () => ({ db: connections.schedule, databaseClock: clock, config, owner, leaseSeconds }),
    db: () => connections.tasks,
    reopen: () => connections.reopen(),
  };
}

function observed(deps: WorkerDeps, telemetry: Telemetry): WorkerDeps & { telemetry: Telemetry } {
  const plugins = observePlugins(deps.plugins, telemetry);
  return { ...deps, plugins, telemetry, observed: new ObservedSchedule(telemetry, deps) };
}

/** A worker that does not know the tables it meets does harm. @returns false when `stop` aborted before it was known */
async function assertDatabase(
  connections: Connections,
  { log, patient, mayBePooled }: { log: Log; patient: boolean; mayBePooled: boolean },
  stop: AbortSignal,
): Promise<boolean> {
  const ask = async () => {
    const pooled = !mayBePooled && isPooled(await connections.schedule.execute(sql.raw(whichBackend)));
    return { pooled, status: await schemaStatus(connections.schedule) };
  };
  const once = () =>
    ask().catch((error: unknown) => {
      throw operatorsError(withoutQuery(error));
    });
  const found = patient ? await new Outage(log).outlast(ask, stop) : await once();
  if (found?.pooled) throw behindPooler();
  if (found) assertServable(found.status);
  return found !== undefined;
}
