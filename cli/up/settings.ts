import { join, resolve } from "node:path";
import { type Config, readConfig } from "../../core/config.ts";
import { hostInUrl } from "../../platform/address.ts";
import { readEnvironment } from "../../platform/environment.ts";
import { ConfigurationError } from "../../platform/errors.ts";
import type { Environment } from "../../platform/variable.ts";
import { isLoopback } from "../../trial/idp/loopback.ts";
import { chooseFreePort } from "./ports.ts";

/** The root of the clone. */
export const root = join(import.meta.dir, "../..");

export interface UpOptions {
  host: string;
  port: number;
  idpPort: number;
  /** 0: any free one. */
  databasePort: number;
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
  if (startsIdp && !isLoopback(options.host)) {
    throw new ConfigurationError([
      `--host ${options.host} would let others sign in with the trial users: set SVC_OIDC_ISSUER to your own issuer, or omit --host`,
    ]);
  }
  const port = options.port || (await chooseFreePort(options.host));
  const idpPort = options.idpPort || (await chooseFreePort("127.0.0.1"));
  return {
    ...options,
    port,
    idpPort,
    dataDir: options.dataDir ? resolve(options.dataDir) : join(root, ".svc"),
    environment,
    config,
    publicUrl: environment.SVC_PUBLIC_URL
      ? config.publicUrl
      : new URL(`http://${hostInUrl(options.host)}:${port}`).origin,
    startsDatabase: !config.databaseUrl,
    startsIdp,
  };
}
