import type { Config, Environment } from "../core/config.ts";
import { readConfig } from "../core/config.ts";
import { operatorsError } from "../core/database_error.ts";
import { readEnvironment } from "../core/environment.ts";
import { ConfigurationError } from "../core/errors.ts";
import { createLog, type Log } from "../core/log.ts";
import { openPlugins } from "../core/plugin/open.ts";
import { assertServable, schemaStatus } from "../core/revision/status.ts";
import { type DatabaseClock, databaseClock } from "../core/schedule/database_clock.ts";
import { withoutQuery } from "../drizzle/query_error.ts";
import { builtinPlugins } from "../plugins/builtin.ts";
import { Connections } from "./connections.ts";
import type { WorkerDeps } from "./deps.ts";
import { Outage } from "./outage.ts";
import { DatabaseTime } from "./time.ts";

/** A dead worker's run waits for so long. */
const leaseSeconds = 30;

export interface OpenWorker extends WorkerDeps {
  close(): Promise<void>;
}

/**
 * Builds a worker from the environment, with real parts. A database that does not answer yet is waited for where
 * `patient`; undefined when `stop` aborts meanwhile.
 *
 * @throws ConfigurationError with every fault
 * @throws Conflict when the schema is not one that this release can work on
 */
export async function openWorker(
  options: { environment: Environment; logLevel?: string; patient: boolean; clock?: DatabaseClock },
  stop: AbortSignal,
): Promise<OpenWorker | undefined> {
  const { logLevel, patient, clock = databaseClock } = options;
  const environment = readEnvironment(options.environment);
  const config = readConfig({ ...environment, ...(logLevel ? { SVC_LOG_LEVEL: logLevel } : {}) });
  if (!config.databaseUrl)
    throw new ConfigurationError(["SVC_DATABASE_URL: needed, postgres://user:password@host/name"]);
  const log = createLog(config.logLevel);
  const connections = new Connections(config.databaseUrl, config.databasePoolSize);
  try {
    if (!(await assertSchema(connections, log, patient, stop))) {
      await connections.close();
      return undefined;
    }
    return await withPlugins(connections, { config, environment, log, clock });
  } catch (error) {
    await connections.close();
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
): Promise<OpenWorker> {
  const time = new DatabaseTime();
  const owner = crypto.randomUUID();
  const context = {
    ...{ clock: time, config, log },
    get db() {
      return connections.tasks;
    },
  };
  const { plugins } = await openPlugins({
    ...{ config, environment, builtin: builtinPlugins, directory: process.cwd() },
    deps: { fetch: (url, init) => fetch(url, init), clock: time, log, context },
  });
  return {
    ...{ config, log, plugins, time },
    schedule: () => ({ db: connections.schedule, databaseClock: clock, config, owner, leaseSeconds }),
    db: () => connections.tasks,
    reopen: () => connections.reopen(),
    close: () => connections.close(),
  };
}

/** A worker that does not know the tables it meets does harm. @returns false when `stop` aborted before it was known */
async function assertSchema(
  connections: Connections,
  log: Log,
  patient: boolean,
  stop: AbortSignal,
): Promise<boolean> {
  const ask = () => schemaStatus(connections.schedule);
  const once = () =>
    ask().catch((error: unknown) => {
      throw operatorsError(withoutQuery(error));
    });
  const status = patient ? await new Outage(log).outlast(ask, stop) : await once();
  if (status) assertServable(status);
  return status !== undefined;
}
