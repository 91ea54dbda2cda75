import { ChallengeWatch } from "../core/auth/challenge/watch.ts";
import { Keys } from "../core/auth/token/keys.ts";
import { type Config, readConfig } from "../core/config.ts";
import type { Plugins } from "../core/plugin/choose.ts";
import { createRegistry } from "../core/plugin/registry.ts";
import { openDatabase } from "../drizzle/client.ts";
import { Background } from "../platform/background.ts";
import { systemClock } from "../platform/clock.ts";
import { createLog } from "../platform/log.ts";
import type { Environment } from "../platform/variable.ts";
import { builtinPlugins } from "../plugins/builtin.ts";
import { type App, createApp } from "./app.ts";
import { proxyTrust } from "./http/address.ts";
import { oidcSignOn } from "./sso/oidc.ts";
import { proxySignOn } from "./sso/proxy.ts";

/** For what must be set before a server starts, and is not asked before anything is connected to. */
const standIns = {
  databaseUrl: "postgres://nowhere.invalid/none",
  keySecret: "only to be looked at, never to be used",
  oidcIssuer: "https://nowhere.invalid",
  proxyJwksUrl: "https://nowhere.invalid",
  proxyIssuer: "https://nowhere.invalid",
  proxyAudience: "nobody",
} satisfies Partial<Config>;

const noPlugins: Plugins = { ofType: () => [], find: () => undefined };

/**
 * The application as this configuration makes it, to be looked at and not to be served: it needs neither a database nor
 * an issuer, and connects to nothing.
 *
 * @throws ConfigurationError when a variable is not valid
 */
export function createInspectionApp(environment: Environment): App {
  const set = Object.entries(readConfig(environment)).filter(([, value]) => value !== undefined);
  const config: Config & typeof standIns = { ...standIns, ...(Object.fromEntries(set) as Config) };
  const log = createLog("silent");
  const { db } = openDatabase(config.databaseUrl, 1);
  const context = { db, clock: systemClock, config, log };
  const registry = createRegistry([{ origin: "svc", exported: builtinPlugins, builtin: true }]);
  return createApp({
    ...{ ...context, registry, background: new Background() },
    plugins: noPlugins,
    watch: new ChallengeWatch(config.databaseUrl, log),
    keys: new Keys(context),
    sso: config.sso === "proxy" ? proxySignOn(config, systemClock, fetch) : oidcSignOn(context, fetch),
    proxies: proxyTrust(config.proxyHeaders, config.trustedProxies),
  });
}
