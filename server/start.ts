import { existsSync } from "node:fs";
import { hostInUrl } from "../core/address.ts";
import type { Environment } from "../core/config.ts";
import { readEnvironment } from "../core/environment.ts";
import { ConfigurationError } from "../core/errors.ts";
import { loadApp } from "./start/load_app.ts";
import type { StartOptions } from "./start/options.ts";
import { serve } from "./start/serve.ts";
import { shareNewConnections, takeNewConnections } from "./start/socket.ts";
import { stopRequested, tell } from "./start/supervised.ts";

/**
 * Serves the application until SIGINT or SIGTERM. What the command line says goes before the environment.
 * @throws ConfigurationError for an APP that cannot be loaded, SvcError for a port that is taken
 */
export async function startServer(options: StartOptions, environment: Environment): Promise<void> {
  const stop = Promise.withResolvers<void>();
  stopRequested(options.supervised).then(stop.resolve);
  // The application reads its configuration when it is loaded, wherever it comes from.
  Object.assign(process.env, settingsOf(options, environment));
  const app = await loadApp(options.app);
  const serving = await serve(app, options, () => {
    // A supervisor first starts the one that takes over; it stops us then.
    if (options.supervised) tell("replace");
    else stop.resolve();
  });
  if (!options.supervised) process.stderr.write(`svc: listening on ${serving.address}\n`);
  if (options.takesOver && options.fd === undefined) {
    takeNewConnections();
    process.once("message", shareNewConnections);
  }
  tell("ready");
  await stop.promise;
  await serving.stop();
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
