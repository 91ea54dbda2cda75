import type { Plugin } from "../core/plugin.ts";
import applicationSource from "./source/applications.ts";
import backstageCatalog from "./source/backstage.ts";
import termSource from "./source/terms.ts";
import webhook from "./webhook/webhook.ts";

/** The plugins that come with the service. What stands here works. */
export const builtinPlugins: readonly Plugin[] = [webhook, termSource, applicationSource, backstageCatalog];
