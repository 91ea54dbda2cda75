import { join, resolve } from "node:path";
import { type Config, readConfig } from "../../core/config.ts";
import { hostInUrl, isLoopbackHost } from "../../platform/address.ts";
import { readEnvironment } from "../../platform/environment.ts";
import { ConfigurationError } from "../../platform/errors.ts";
import type { Environment } from "../../platform/variable.ts";
import { chooseFreePort } from "./ports.ts";

/** The root of the clone. */
export const root = join(import.meta.dir, "../..");

export interface UpOptions {
  host: string;
  port: number;
  idpPort: number;
  /** 0: any free one. */
  databasePort: number;
  /** 0: any free one. Undefined: no mutual TLS. */
  mtlsPort?: number;
  dataDir?: string;
  verbose: boolean;
  /** Whether to load example data into a new database. */
  example: boolean;
}

/** What to start and where, decided before anything is started. */
export interface Settings extends UpOptions {
  dataDir: string;
  /** The caller's environment on top of `.env` in the clone, which take precedence over our choices. */
  environment: Environment;
  config: Config;
  publicUrl: string;
  /** Those of all but the database, which chooses its own when it starts. */
  reservedPorts: readonly number[];
  /** Where clients with certificates find the server, and the names that its certificate must have. */
  mtls?: { port: number; url: string; names: string[] };
  startsDatabase: boolean;
  startsIdp: boolean;
}

/** @throws ConfigurationError if others could reach the trial provider, or the environment is invalid */
export async function decide(options: UpOptions, callers: Environment): Promise<Settings> {
  const environment = readEnvironment(callers, join(root, ".env"));
  const config = readConfig(environment);
  if (config.databaseDirectUrl && !config.databaseUrl) {
    throw new ConfigurationError(["SVC_DATABASE_DIRECT_URL requires SVC_DATABASE_URL"]);
  }
  const startsIdp = config.sso === "oidc" && !config.oidcIssuer;
  if (startsIdp && !isLoopbackHost(options.host)) {
    throw new ConfigurationError([
      `--host ${options.host} would let others sign in with the trial users: set SVC_OIDC_ISSUER to your own issuer, or omit --host`,
    ]);
  }
  const reservedPorts: number[] = [];
  const reserve = async (host: string, wanted: number) => {
    const port = wanted || (await chooseFreePort(host, reservedPorts));
    reservedPorts.push(port);
    return port;
  };
  const port = await reserve(options.host, options.port);
  const mtlsPort = options.mtlsPort === undefined ? undefined : await reserve(options.host, options.mtlsPort);
  const idpPort = await reserve("127.0.0.1", options.idpPort);
  const publicUrl = environment.SVC_PUBLIC_URL
    ? config.publicUrl
    : new URL(`http://${hostInUrl(options.host)}:${port}`).origin;
  return {
    ...options,
    port,
    idpPort,
    reservedPorts,
    mtls: mtlsPort === undefined ? undefined : mtlsOf(mtlsPort, publicUrl, environment.SVC_MTLS_URL),
    dataDir: options.dataDir ? resolve(options.dataDir) : join(root, ".svc"),
    environment,
    config,
    publicUrl,
    startsDatabase: !config.databaseUrl,
    startsIdp,
  };
}

/** Addresses that name this machine as `localhost` does. */
const local = new Set(["127.0.0.1", "[::1]", "0.0.0.0", "[::]"]);

function mtlsOf(port: number, publicUrl: string, chosen: string | undefined): Settings["mtls"] {
  const { hostname } = new URL(publicUrl);
  const url = chosen ?? new URL(`https://${local.has(hostname) ? "localhost" : hostname}:${port}`).origin;
  const { hostname: named } = new URL(url);
  return { port, url, names: ["localhost", named.replace(/^\[(.*)\]$/, "$1")] };
}
