import { existsSync } from "node:fs";
import { parseConfig } from "../../core/config.ts";
import { hostInUrl } from "../../platform/address.ts";
import { systemClock } from "../../platform/clock.ts";
import { readEnvironment } from "../../platform/environment.ts";
import { ConfigurationError } from "../../platform/errors.ts";
import { createLifecycleLog, type Log } from "../../platform/log.ts";
import { onHangUp, stopSignal } from "../../platform/stop_signal.ts";
import { type MetricsPlace, metricsPlace, serveMetrics } from "../../platform/telemetry/endpoint.ts";
import type { Environment } from "../../platform/variable.ts";
import { startWatchdog } from "../../platform/watchdog.ts";
import { loadApp } from "./load_app.ts";
import type { StartOptions } from "./options.ts";
import { type Serving, serve } from "./serve.ts";
import type { Service } from "./service.ts";
import { shareNewConnections, takeNewConnections } from "./socket.ts";
import { onceMore } from "./supervise.ts";
import { onOrder, sendToSupervisor, stopOrdered } from "./supervised.ts";
import { certificateWarning } from "./tls.ts";

/**
 * Serves the application until SIGINT or SIGTERM; one of several, until its supervisor says so. What the command line says
 * goes before the environment.
 * @throws ConfigurationError for an APP that cannot be loaded, SvcError for a port that is taken
 */
export async function startServer(options: StartOptions, environment: Environment): Promise<void> {
  const stop = Promise.withResolvers<void>();
  const log = createLifecycleLog();
  let reload = () => {};
  if (!options.supervised) onHangUp(() => reload(), stop.resolve);
  void (options.supervised ? stopOrdered(options.timeoutGracefulShutdown) : stopSignal()).then(stop.resolve);
  // The application reads its configuration when it is loaded, wherever it comes from.
  Object.assign(process.env, settingsOf(options, environment));
  const service = await Promise.race([loadApp(options.app), stop.promise]);
  // It may wait in vain, for a database that takes connections and says nothing; nobody is served yet.
  if (service === undefined) return;
  if (options.sslCertfile === undefined) service.warnWithoutTls?.();
  // Before it listens: what it cannot serve, the process before it still can. The supervisor ends it when that takes too long.
  if (options.whenReady) {
    const stopped = stop.promise.then(() => true);
    if (await Promise.race([service.untilReady?.(), stopped])) return;
  }
  const endpoint =
    service.metrics && !options.supervised
      ? serveMetrics(service.metrics, service.metrics.scrape)
      : undefined;
  const serving = await serve(service, options, () => {
    // A supervisor first starts the one that takes over; it stops us then.
    if (options.supervised) sendToSupervisor("replace");
    else stop.resolve();
  });
  const endWatchdog = options.watchdog ? startWatchdog() : undefined;
  if (!options.supervised) log.info(`listening on ${serving.address}`);
  if (endpoint) log.info(`metrics at ${endpoint.address}`);
  reload = onceMore(
    () => renewCertificate(serving, options, log),
    (error) => log.error({ err: error }, "cannot reload the certificate; the old one stays in use"),
  );
  const { verbosity } = service;
  if (verbosity && !options.supervised) process.on("SIGUSR2", () => verbosity.toggle());
  const takesNewOnes = options.takesOver && options.fd === undefined;
  if (takesNewOnes) takeNewConnections();
  onOrder((order) => {
    if (order === "leave") serving.leave();
    else if (order === "taken over") takesNewOnes && shareNewConnections();
    else if (typeof order === "object") void sendMetrics(service, order.question);
    else if (verbosity) verbosity.verbose = order === "log verbosely";
  });
  sendToSupervisor("ready");
  await stop.promise;
  // One of several processes is replaced without a word: whom a balancer asks is all of them.
  if (!options.supervised && options.timeoutDrain > 0) {
    serving.leave();
    await Bun.sleep(options.timeoutDrain * 1000);
  }
  await serving.stop();
  await Promise.all([endpoint?.stop(), service.flush?.(), endWatchdog?.()]);
}

/** What SIGHUP asks of a process that serves alone. */
async function renewCertificate(serving: Serving, options: StartOptions, log: Log): Promise<void> {
  if (!serving.renewCertificate) {
    const reason =
      options.sslCertfile === undefined ? "there is no certificate" : "a Unix socket keeps its certificate";
    log.warn(
      `SIGHUP has changed nothing: ${reason}. For new settings, restart the server, or start it with --workers`,
    );
    return;
  }
  await serving.renewCertificate();
  log.info("certificate reloaded");
  const warning = certificateWarning(options, systemClock.now());
  if (warning !== undefined) log.warn(warning);
}

/** Where the supervisor of such servers serves their metrics. */
export function metricsPlaceOf(options: StartOptions, environment: Environment): MetricsPlace | undefined {
  // Another application has other variables.
  if (!options.app.startsWith("server/main:")) return undefined;
  // What is wrong with it the first worker says, with all that only the application knows.
  const { config } = parseConfig(readEnvironment({ ...environment, ...settingsOf(options, environment) }));
  return metricsPlace(config, "metricsPort");
}

/** Tells nothing where there is nothing to tell any more: at our end. Throws nothing. */
async function sendMetrics({ metrics }: Service, question: number): Promise<void> {
  const text = await metrics?.scrape().catch(() => undefined);
  if (text !== undefined) sendToSupervisor({ metrics: text, question });
}

/** What the options say, as variables of the environment. @throws ConfigurationError for port 0, a missing --env-file */
function settingsOf(options: StartOptions, environment: Environment): Environment {
  const { envFile, proxyHeaders, forwardedAllowIps, logLevel, accessLog } = options;
  if (envFile !== undefined && !existsSync(envFile)) {
    throw new ConfigurationError([`--env-file: there is no ${envFile}`]);
  }
  const own = envFile === undefined ? {} : readEnvironment(environment, envFile);
  const publicUrl = readEnvironment({ ...environment, ...own }).SVC_PUBLIC_URL || ownUrl(options);
  return {
    ...own,
    ...(publicUrl === undefined ? {} : { SVC_PUBLIC_URL: publicUrl }),
    ...(proxyHeaders ? { SVC_PROXY_HEADERS: "true" } : {}),
    ...(forwardedAllowIps ? { SVC_FORWARDED_ALLOW_IPS: forwardedAllowIps } : {}),
    ...(logLevel ? { SVC_LOG_LEVEL: logLevel } : {}),
    ...(accessLog ? {} : { SVC_ACCESS_LOG: "false" }),
  };
}

/** Where a person on this machine reaches us, for want of SVC_PUBLIC_URL. @throws ConfigurationError where nobody could */
function ownUrl({ app, host, port, uds, fd, sslKeyfile }: StartOptions): string | undefined {
  const hidden =
    uds !== undefined ? "--uds" : fd !== undefined ? "--fd" : port === 0 ? "--port 0" : undefined;
  if (hidden !== undefined) {
    // Another application has other variables.
    if (!app.startsWith("server/main:")) return undefined;
    throw new ConfigurationError([`${hidden} needs SVC_PUBLIC_URL: nobody could know the address`]);
  }
  const everywhere = host === "0.0.0.0" || host === "::";
  const name = everywhere ? "127.0.0.1" : hostInUrl(host);
  return `${sslKeyfile === undefined ? "http" : "https"}://${name}:${port}`;
}
