import { isAbsolute, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { Environment } from "../core/config.ts";
import { readEnvironment } from "../core/environment.ts";
import { ConfigurationError, SvcError } from "../core/errors.ts";
import type { App } from "./app.ts";

export interface StartOptions {
  /** `<module>:<attribute>`; `server/main:app` is our own. */
  app: string;
  host: string;
  port: number;
  proxyHeaders: boolean;
  forwardedAllowIps?: string;
  logLevel?: string;
}

/** Held polls may keep a connection for half a minute; a stop waits this long for the rest, then cuts. */
const graceSeconds = 5;

/**
 * Serves the application until SIGINT or SIGTERM. What the command line says goes before the environment.
 * @throws ConfigurationError for an APP that cannot be loaded, SvcError for a port that is taken
 */
export async function startServer(options: StartOptions, environment: Environment): Promise<void> {
  const { host, port } = options;
  const settings: Environment = {
    SVC_PUBLIC_URL: readEnvironment(environment).SVC_PUBLIC_URL || ownUrl(host, port),
    ...(options.proxyHeaders ? { SVC_PROXY_HEADERS: "true" } : {}),
    ...(options.forwardedAllowIps ? { SVC_FORWARDED_ALLOW_IPS: options.forwardedAllowIps } : {}),
    ...(options.logLevel ? { SVC_LOG_LEVEL: options.logLevel } : {}),
  };
  // The application reads its configuration when it is loaded, wherever it comes from.
  Object.assign(process.env, settings);
  const app = await loadApp(options.app);
  try {
    app.listen({ hostname: host, port });
  } catch (cause) {
    // Not stop(): Elysia has no server to stop yet, and says so with a stack.
    await app.decorator?.drain?.();
    const taken = (cause as { code?: string }).code === "EADDRINUSE";
    const reason = taken ? "is taken: choose another one with --port" : "cannot be listened on";
    throw new SvcError("configuration", `Port ${port} of ${host} ${reason}`, { cause });
  }
  process.stderr.write(`svc: listening on http://${host}:${app.server?.port}\n`);
  await new Promise<void>((stop) => {
    process.once("SIGINT", () => stop());
    process.once("SIGTERM", () => stop());
  });
  // Another application may have nothing to drain.
  await app.decorator?.drain?.();
  const late = Bun.sleep(graceSeconds * 1000).then(() => app.stop(true));
  await Promise.race([app.stop(), late]);
}

/** Where a person on this machine reaches us, for want of SVC_PUBLIC_URL. @throws ConfigurationError for port 0 */
function ownUrl(host: string, port: number): string {
  if (port === 0)
    throw new ConfigurationError(["--port 0 needs SVC_PUBLIC_URL: nobody could know the address"]);
  const everywhere = host === "0.0.0.0" || host === "::";
  return `http://${everywhere ? "127.0.0.1" : host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** @throws ConfigurationError with one line that names what is missing */
async function loadApp(name: string): Promise<App> {
  const [, path, attribute] = name.match(/^(.+):([A-Za-z_$][\w$]*)$/) ?? [];
  if (!path || !attribute) {
    throw new ConfigurationError([`"${name}" is not <module>:<attribute>, for example server/main:app`]);
  }
  const module: Record<string, unknown> = await importApp(path);
  const app = module[attribute] as App | undefined;
  if (app === undefined) throw new ConfigurationError([`Module ${path} has no "${attribute}"`]);
  if (typeof app.listen !== "function" || typeof app.fetch !== "function") {
    throw new ConfigurationError([`"${attribute}" of ${path} is not an application`]);
  }
  return app;
}

async function importApp(path: string): Promise<Record<string, unknown>> {
  // By a literal, so that the single executable carries it.
  if (path === "server/main") return import("./main.ts");
  const file = isAbsolute(path) ? path : resolve(path);
  try {
    return await import(pathToFileURL(Bun.resolveSync(file, process.cwd())).href);
  } catch (cause) {
    if (cause instanceof SvcError) throw cause;
    throw new ConfigurationError([`Module ${path} cannot be loaded`], { cause });
  }
}
