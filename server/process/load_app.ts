import { isAbsolute, join } from "node:path";
import { pathToFileURL } from "node:url";
import { ConfigurationError, SvcError } from "../../platform/errors.ts";
import { placeThrown, sourceFaults } from "../../platform/source_error.ts";
import type { FetchApp, Service } from "./service.ts";

/**
 * Loads the application that `<module>:<attribute>` names. The module is a file (absolute or relative to the working
 * directory) or an npm package.
 * @throws ConfigurationError with one line that says what is missing
 */
export async function loadApp(name: string): Promise<Service> {
  const [, path, attribute] = name.match(/^(.+):([A-Za-z_$][\w$]*)$/) ?? [];
  if (!path || !attribute) {
    throw new ConfigurationError([`"${name}" is not <module>:<attribute>, for example server/main:app`]);
  }
  const app = (await importModule(path))[attribute];
  if (app === undefined) throw new ConfigurationError([`Module ${path} has no "${attribute}"`]);
  if (answersRequests(app)) return { app };
  if (isService(app)) return app;
  throw new ConfigurationError([`"${attribute}" of ${path} is not an application: it has no fetch(request)`]);
}

function isService(value: unknown): value is Service {
  return typeof value === "object" && value !== null && "app" in value && answersRequests(value.app);
}

function answersRequests(app: unknown): app is FetchApp {
  const isObject = (typeof app === "object" && app !== null) || typeof app === "function";
  return isObject && "fetch" in app && typeof app.fetch === "function";
}

async function importModule(path: string): Promise<Record<string, unknown>> {
  const own = path === "server/main";
  const file = own ? path : (resolve(isAbsolute(path) ? path : join(process.cwd(), path)) ?? resolve(path));
  if (file === undefined) {
    throw new ConfigurationError([`There is no module ${path} in the working directory, nor such a package`]);
  }
  try {
    // As a literal, so that the single executable includes it.
    return await (own ? import("../main.ts") : import(pathToFileURL(file).href));
  } catch (cause) {
    if (cause instanceof SvcError) throw cause;
    const faults = sourceFaults(cause);
    // A fault of ours, not of the configuration.
    if (own && faults.length === 0) throw cause;
    const kind = cause instanceof Error ? cause.name : typeof cause;
    const place = placeThrown(cause);
    const thrown = `(${kind}${place ? ` at ${place}` : ""}); SVC_DEBUG=1 shows all of it`;
    throw new ConfigurationError(
      faults.length > 0
        ? faults.map((fault) => `Module ${path} cannot be loaded: ${fault}`)
        : [`Module ${path} cannot be loaded ${thrown}`],
      { cause },
    );
  }
}

function resolve(path: string): string | undefined {
  try {
    return Bun.resolveSync(path, process.cwd());
  } catch {
    return undefined;
  }
}
