import { sql } from "drizzle-orm";
import { warnOfDisagreement } from "../core/agreement.ts";
import type { Config } from "../core/config.ts";
import { type DatabaseClock, databaseClock } from "../core/database_clock.ts";
import { wrongKeySecret } from "../core/key_secret.ts";
import { openParts } from "../core/open.ts";
import { installUnhandledErrorHandlers } from "../core/plugin/unhandled.ts";
import { isPooled, whichBackend } from "../drizzle/connection/pooler.ts";
import { behindPooler, operatorsError, refusedByPooler, withoutQuery } from "../drizzle/database_error.ts";
import { assertServable, schemaStatus } from "../drizzle/revision/status.ts";
import { readEnvironment } from "../platform/environment.ts";
import type { Log } from "../platform/log.ts";
import type { Telemetry } from "../platform/telemetry/telemetry.ts";
import type { Environment } from "../platform/variable.ts";
import { builtinPlugins } from "../plugins/builtin.ts";
import { Connections } from "./connections.ts";
import type { WorkerDeps } from "./deps.ts";
import { ObservedSchedule } from "./metrics.ts";
import { Outage } from "./outage.ts";
import { DatabaseTime } from "./time.ts";

/** How long a dead worker's run stays claimed. */
const leaseSeconds = 30;

export interface OpenWorker extends WorkerDeps {
  telemetry?: Telemetry;
  close(): Promise<void>;
}

/**
 * Builds a worker from the environment. If `patient`, it waits for a database that does not answer yet, and returns
 * undefined when `stop` aborts first. With `logUnhandled`, unhandled errors of plugins are logged and do not end the
 * process.
 *
 * @throws ConfigurationError with every invalid setting
 * @throws Conflict when this release cannot work with the database's schema
 * @throws Unavailable when the only database address is a connection pooler's
 */
export async function openWorker(
  options: { environment: Environment; patient: boolean; logUnhandled?: boolean; clock?: DatabaseClock },
  stop: AbortSignal,
): Promise<OpenWorker | undefined> {
  const { patient, logUnhandled = false, clock = databaseClock } = options;
  const time = new DatabaseTime();
  let removeHandlers: (() => void) | undefined;
  const parts = await openParts(
    {
      environment: readEnvironment(options.environment),
      telemetry: "svc-scheduler",
      clock: time,
      builtin: builtinPlugins,
      connect: (place) => new Connections(place),
    },
    // This must happen before any plugin is set up.
    async ({ log }) => {
      if (logUnhandled) removeHandlers = installUnhandledErrorHandlers(log);
    },
  ).catch((error: unknown) => {
    removeHandlers?.();
    throw error;
  });
  const { connections, plugins } = parts;
  const { config, log, telemetry } = parts.context;
  const close = async () => {
    await Promise.all([parts.close(), telemetry?.stop()]);
    removeHandlers?.();
  };
  try {
    if (!(await assertDatabase(connections, { config, log, patient }, stop))) {
      await close();
      return undefined;
    }
    await warnOfDisagreement(
      { db: connections.schedule, config, log },
      // A task that is run by hand is not part of the system.
      { role: "worker", record: patient },
    ).catch((error: unknown) =>
      log.warn({ err: error }, "could not compare settings with the other processes"),
    );
    const owner = crypto.randomUUID();
    const schedule = () => ({
      db: connections.schedule,
      databaseClock: clock,
      config,
      owner,
      leaseSeconds,
    });
    return {
      config,
      log,
      plugins,
      time,
      telemetry,
      schedule,
      close,
      db: () => connections.db,
      reopen: () => connections.reopen(),
      observed: telemetry && new ObservedSchedule(telemetry, { schedule }),
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/**
 * Checks the schema before any work: with unknown tables a worker could do harm. With a wrong key secret, it could not
 * revoke access.
 *
 * @returns false when `stop` aborted first
 */
async function assertDatabase(
  connections: Connections,
  { config, log, patient }: { config: Config; log: Log; patient: boolean },
  stop: AbortSignal,
): Promise<boolean> {
  const outage = new Outage(log);
  const answerTo = <T>(ask: () => Promise<T>): Promise<T | undefined> =>
    patient
      ? outage.retryUntilAvailable(ask, stop)
      : ask().catch((error: unknown) => {
          throw operatorsError(withoutQuery(error));
        });
  const db = connections.schedule;
  const mayBePooled = config.databaseDirectUrl !== undefined;
  const ask = async () => {
    const pooled = !mayBePooled && isPooled(await db.execute(sql.raw(whichBackend)));
    return { pooled, status: await schemaStatus(db) };
  };
  // Otherwise it would wait for the pooler to accept its connection.
  const askOrRefuse = () =>
    ask().catch((error: unknown) => {
      if (refusedByPooler(error)) return "refused" as const;
      throw error;
    });
  const found = await answerTo(askOrRefuse);
  if (found === "refused" || found?.pooled) throw behindPooler();
  if (!found) return false;
  assertServable(found.status);
  const checked = await answerTo(async () => ({ wrong: await wrongKeySecret({ db, config }) }));
  if (checked?.wrong) throw checked.wrong;
  return checked !== undefined;
}
