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
import { onceMore } from "./supervise.ts";
import { onOrder, sendToSupervisor, stopOrdered } from "./supervised.ts";
import { certificateWarnings } from "./tls.ts";

/**
 * Serves the application until SIGINT or SIGTERM, or until the supervisor stops it. Options override the environment.
 * @throws ConfigurationError for an APP that cannot be loaded, SvcError for a port that is taken
 */
export async function startServer(options: StartOptions, environment: Environment): Promise<void> {
  const stop = Promise.withResolvers<void>();
  const log = createLifecycleLog();
  let reload = () => {};
  let toggleVerbosity = () => {};
  // Before loading: without a handler, either signal would end a process that is starting.
  if (!options.supervised) {
    onHangUp(() => reload(), stop.resolve);
    process.on("SIGUSR2", () => toggleVerbosity());
  }
  void (options.supervised ? stopOrdered(options.timeoutGracefulShutdown) : stopSignal()).then(stop.resolve);
  // The application reads its configuration when it is loaded, wherever it is imported from.
  Object.assign(process.env, settingsOf(options, environment));
  const service = await Promise.race([loadApp(options.app), stop.promise]);
  // Loading may hang on a database that accepts connections but does not answer; nothing is served yet.
  if (service === undefined) return;
  if (options.sslCertfile === undefined) service.warnWithoutTls?.();
  // Before listening, so that the previous process still serves what this one cannot. The supervisor ends it on
  // timeout.
  if (options.whenReady) {
    const stopped = stop.promise.then(() => true);
    if (await Promise.race([service.untilReady?.(), stopped])) return;
  }
  const endpoint =
    service.metrics && !options.supervised
      ? serveMetrics(service.metrics, service.metrics.scrape)
      : undefined;
  const serving = await serve(service, options);
  const endWatchdog = options.watchdog ? startWatchdog() : undefined;
  if (!options.supervised) log.info(`listening on ${serving.address}`);
  if (!options.supervised && serving.mtlsAddress)
    log.info(`listening for client certificates on ${serving.mtlsAddress}`);
  if (endpoint) log.info(`metrics at ${endpoint.address}`);
  reload = onceMore(
    async () => {
      const reloaded = await service.reload?.();
      if (reloaded) log.info("certificate authorities of clients reloaded");
      // Behind a proxy, there may be nothing else.
      if (!reloaded || serving.renewCertificate) await renewCertificate(serving, options, log);
    },
    (error) => log.error({ err: error }, "cannot reload the certificate; the old one stays in use"),
  );
  const { verbosity } = service;
  if (verbosity) toggleVerbosity = () => verbosity.toggle();
  if (options.takesOver) serving.takeNewConnections();
  onOrder((order) => {
    if (order === "leave") serving.leave();
    else if (order === "taken over") {
      if (options.takesOver) serving.shareNewConnections();
    } else if (typeof order === "object") void sendMetrics(service, order.question);
    else if (verbosity) verbosity.verbose = order === "log verbosely";
  });
  sendToSupervisor("ready");
  await stop.promise;
  // No separate draining under a supervisor: a load balancer probes all processes as one.
  if (!options.supervised && options.timeoutDrain > 0) {
    serving.leave();
    await Bun.sleep(options.timeoutDrain * 1000);
  }
  await serving.stop();
  await Promise.all([endpoint?.stop(), service.flush?.(), endWatchdog?.()]);
}

/** Handles SIGHUP in a process without a supervisor. */
async function renewCertificate(serving: Serving, options: StartOptions, log: Log): Promise<void> {
  if (!serving.renewCertificate) {
    const reason =
      options.sslCertfile === undefined ? "there is no certificate" : "a Unix socket keeps its certificate";
    log.warn(
      `SIGHUP changed nothing: ${reason}. For new settings, restart the server, or start it with --workers`,
    );
    return;
  }
  await serving.renewCertificate();
  log.info("certificate reloaded");
  for (const warning of certificateWarnings(options, systemClock.now())) log.warn(warning);
}

/** Where the supervisor of these servers serves their metrics. */
export function metricsPlaceOf(options: StartOptions, environment: Environment): MetricsPlace | undefined {
  // Other applications have other variables.
  if (!options.app.startsWith("server/main:")) return undefined;
  // The first worker reports invalid settings, with everything that only the application knows.
  const { config } = parseConfig(readEnvironment({ ...environment, ...settingsOf(options, environment) }));
  return metricsPlace(config, "metricsPort");
}

/** Sends the metrics to the supervisor, unless it is gone. Never throws. */
async function sendMetrics({ metrics }: Service, question: number): Promise<void> {
  const text = await metrics?.scrape().catch(() => undefined);
  if (text !== undefined) sendToSupervisor({ metrics: text, question });
}

/**
 * The options as environment variables.
 * @throws ConfigurationError for port 0 or a missing --env-file
 */
function settingsOf(options: StartOptions, environment: Environment): Environment {
  const { envFile, proxyHeaders, forwardedAllowIps, logLevel, accessLog } = options;
  if (envFile !== undefined && !existsSync(envFile)) {
    throw new ConfigurationError([`--env-file: there is no ${envFile}`]);
  }
  const own = envFile === undefined ? {} : readEnvironment(environment, envFile);
  const variables = readEnvironment({ ...environment, ...own });
  const publicUrl = variables.SVC_PUBLIC_URL || ownUrl(options);
  return {
    ...own,
    ...(publicUrl === undefined ? {} : { SVC_PUBLIC_URL: publicUrl }),
    ...(proxyHeaders ? { SVC_PROXY_HEADERS: "true" } : {}),
    ...(forwardedAllowIps ? { SVC_FORWARDED_ALLOW_IPS: forwardedAllowIps } : {}),
    ...(logLevel ? { SVC_LOG_LEVEL: logLevel } : {}),
    ...(accessLog ? {} : { SVC_ACCESS_LOG: "false" }),
    ...(options.mtlsCaCerts ? { SVC_MTLS_CA_CERTS: options.mtlsCaCerts } : {}),
    ...mtlsUrlOf(publicUrl, options.mtlsPort, variables),
  };
}

/** Where clients find --mtls-port, unless SVC_MTLS_URL says so. */
function mtlsUrlOf(
  publicUrl: string | undefined,
  port: number | undefined,
  { SVC_MTLS_URL }: Environment,
): Environment {
  const url = port === undefined || SVC_MTLS_URL ? null : URL.parse(publicUrl ?? "");
  return url ? { SVC_MTLS_URL: `https://${url.hostname}${port === 443 ? "" : `:${port}`}` } : {};
}

/**
 * The local URL, if SVC_PUBLIC_URL is not set.
 * @throws ConfigurationError if clients would not know it
 */
function ownUrl({ app, host, port, uds, fd, sslKeyfile }: StartOptions): string | undefined {
  const hidden =
    uds !== undefined ? "--uds" : fd !== undefined ? "--fd" : port === 0 ? "--port 0" : undefined;
  if (hidden !== undefined) {
    // Other applications have other variables.
    if (!app.startsWith("server/main:")) return undefined;
    throw new ConfigurationError([`${hidden} needs SVC_PUBLIC_URL: clients would not know the address`]);
  }
  const everywhere = host === "0.0.0.0" || host === "::";
  const name = everywhere ? "127.0.0.1" : hostInUrl(host);
  return `${sslKeyfile === undefined ? "http" : "https"}://${name}:${port}`;
}
