import { readConfig } from "../core/config.ts";
import type { Plugins } from "../core/plugin/choose.ts";
import { createLog } from "../platform/log.ts";
import type { Environment } from "../platform/variable.ts";
import { type App, createApp } from "./app.ts";
import { openServerParts } from "./open.ts";

/** Placeholders for settings that a server requires but that are unused until it connects to something. */
const standIns = {
  databaseUrl: "postgres://nowhere.invalid/none",
  keySecret: "only to be looked at, never to be used",
  oidcIssuer: "https://nowhere.invalid",
  proxyJwksUrl: "https://nowhere.invalid",
  proxyIssuer: "https://nowhere.invalid",
  proxyAudience: "nobody",
};

const noPlugins: Plugins = { ofType: () => [], find: () => undefined };

/**
 * Creates the application for inspection, not for serving: it needs neither a database nor an issuer, and connects to
 * nothing.
 *
 * @throws ConfigurationError when a variable is invalid
 */
export async function createInspectionApp(environment: Environment): Promise<App> {
  const config = { ...readConfig(environment) };
  for (const [name, value] of Object.entries(standIns))
    Object.assign(config, { [name]: config[name as keyof typeof standIns] ?? value });
  const log = createLog("silent");
  return createApp(await openServerParts({ environment, config, log, plugins: noPlugins })).app;
}
