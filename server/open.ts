import { warnOfDisagreement } from "../core/agreement.ts";
import { EventCounts } from "../core/audit.ts";
import { ChallengeWatch } from "../core/auth/challenge/watch.ts";
import { Keys } from "../core/auth/token/keys.ts";
import { parseConfig } from "../core/config.ts";
import type { Context } from "../core/context.ts";
import { ConfigurationFaults } from "../core/faults.ts";
import { runDueFlows } from "../core/incident/steps/run.ts";
import { observePlugins } from "../core/plugin/observe.ts";
import { openPlugins } from "../core/plugin/open.ts";
import { assertReady } from "../core/readiness.ts";
import { deleteExpired } from "../core/retention.ts";
import { openDatabase } from "../drizzle/client.ts";
import { keepsStatements } from "../drizzle/connection/database_address.ts";
import { databaseMissing } from "../drizzle/connection/database_url.ts";
import { watchPools } from "../drizzle/connection/telemetry.ts";
import { databaseAnswer } from "../drizzle/database_answer.ts";
import { Background } from "../platform/background.ts";
import { systemClock } from "../platform/clock.ts";
import { readEnvironment } from "../platform/environment.ts";
import { ConfigurationError } from "../platform/errors.ts";
import { createLog, Verbosity } from "../platform/log.ts";
import { metricsPlace } from "../platform/telemetry/endpoint.ts";
import { openTelemetry } from "../platform/telemetry/telemetry.ts";
import { builtinPlugins } from "../plugins/builtin.ts";
import { type App, createApp, type Operator } from "./app.ts";
import { proxyTrust } from "./http/address.ts";
import { oidcSignOn } from "./sso/oidc.ts";
import { proxySignOn } from "./sso/proxy.ts";
import { Folder } from "./static/folder.ts";

/** Often, since strangers can add what it deletes. */
const cleanUpSeconds = 60;
/** What a server that is killed loses of its counts. */
const flushSeconds = 600;
/** What follows from incidents and was left undone: by a process that died, or by a plugin that failed. */
const flowSeconds = 15;

/** Nobody is asked there: it stands for a database address that is missing, until that is reported. */
const nowhere = "postgres://127.0.0.1:1/";

/**
 * Builds the application from the environment, with real parts. It opens no port; stopping the app closes what was
 * opened here. The database may still be down: /healthcheck tells.
 *
 * @throws ConfigurationError with every fault; Conflict when the schema is not one that this release can work on;
 * Unavailable when the database takes no writes, or when the only address that it has is a pooler's
 */
export async function openApp(): Promise<App> {
  const environment = readEnvironment();
  const parsed = parseConfig(environment);
  const { config } = parsed;
  const faults = new ConfigurationFaults(parsed.faults);
  await faults.collect(() => {
    if (!config.databaseUrl) throw new ConfigurationError([databaseMissing]);
  });
  const log = createLog(config.logLevel);
  const telemetry = faults.any ? undefined : await openTelemetry(config, log, "svc-server");
  const { databasePoolSize: poolSize } = config;
  const poolWatch = telemetry && watchPools(telemetry)("server", poolSize);
  const prepare = keepsStatements(config);
  const databaseUrl = config.databaseUrl ?? nowhere;
  const database = openDatabase(databaseUrl, poolSize, poolWatch, { prepare });
  const counts = new EventCounts();
  const context: Context = { db: database.db, clock: systemClock, config, log, telemetry, counts };
  const keys = await faults.collect(() => new Keys(context));
  const sso = await faults.collect(() =>
    config.sso === "proxy" ? proxySignOn(config, systemClock, fetch) : oidcSignOn(context, fetch),
  );
  const proxies = await faults.collect(() => proxyTrust(config.proxyHeaders, config.trustedProxies));
  await faults.collect(() => config.staticDir && Folder.open(config.staticDir));
  const opened = await faults.collect(() =>
    openPlugins({
      ...{ config, environment, builtin: builtinPlugins, directory: process.cwd() },
      deps: { fetch: (url, init) => fetch(url, init), clock: systemClock, log, context },
    }),
  );
  // Otherwise connections and processes would keep this process alive.
  const closeOnError = async (error: unknown): Promise<never> => {
    opened?.close();
    await database.close();
    throw error;
  };
  try {
    faults.throwIfAny();
    await assertReady(database.db, keys, log);
  } catch (error) {
    return await closeOnError(error);
  }
  const { registry } = opened;
  const plugins = telemetry ? observePlugins(opened.plugins, telemetry) : opened.plugins;
  const watch = new ChallengeWatch(config.databaseDirectUrl ?? databaseUrl, log);
  await watch.start().catch(closeOnError);
  let cleaning = false;
  const cleanUp = setInterval(() => {
    if (cleaning) return;
    cleaning = true;
    deleteExpired(context)
      .catch((error: unknown) => log.warn({ err: error }, "could not delete what has expired"))
      .finally(() => {
        cleaning = false;
      });
  }, cleanUpSeconds * 1000);
  const flush = () =>
    // In time, so that a database that is frozen does not hold up the end.
    databaseAnswer(counts.flush(database.db, systemClock.now())).catch((error: unknown) =>
      log.warn({ err: error }, "could not write counts into the audit log"),
    );
  const flushing = setInterval(flush, flushSeconds * 1000);
  const background = new Background();
  // A database that is still down is asked again.
  let compared = false;
  const compareSettings = async () => {
    if (compared) return;
    try {
      await warnOfDisagreement(context, { role: "server" });
      compared = true;
    } catch (error) {
      log.debug({ err: error }, "could not compare our settings with the others'");
    }
  };
  const runFlows = () => {
    background.add(compareSettings());
    background.add(runDueFlows({ ...context, plugins, background }));
  };
  runFlows();
  const flows = setInterval(runFlows, flowSeconds * 1000);
  const app = createApp({ ...context, registry, plugins, background, watch, keys, sso, proxies });
  const place = metricsPlace(config, "metricsPort");
  Object.assign(app.decorator.operator, {
    verbosity: new Verbosity(log),
    warnWithoutTls() {
      if (
        !config.publicUrl.startsWith("https:") ||
        config.proxyHeaders ||
        config.challengeLegacy !== "same_ip"
      )
        return;
      log.warn(
        "SVC_PUBLIC_URL is https and --proxy-headers is off: if a proxy ends TLS, every client has its address, and SVC_CHALLENGE_LEGACY=same_ip keeps nobody apart",
      );
    },
    flush: telemetry?.stop,
    ...(place && telemetry?.scrape ? { metrics: { ...place, scrape: telemetry.scrape } } : {}),
  } satisfies Operator);
  // Requests that wait for a plugin need not any more, and what was begun is given back.
  app.decorator.drain = async () => void (await Promise.all([watch.stop(), background.stop()]));
  return app.onStop(async () => {
    clearInterval(cleanUp);
    clearInterval(flushing);
    clearInterval(flows);
    await background.stop();
    opened.close();
    await watch.stop();
    await flush();
    await database.close();
  });
}
