import type { Server } from "bun";
import type { ChallengeWatch } from "../core/auth/challenge/watch.ts";
import type { Keys } from "../core/auth/token/keys.ts";
import type { PluginContext } from "../core/plugin/context.ts";
import type { PluginRegistry } from "../core/plugin/registry.ts";
import type { ProxyTrust } from "./http/address.ts";
import { clientAddress } from "./http/address.ts";
import type { SingleSignOn } from "./sso/sso.ts";

/** Everything that the application is made of; `createApp` reads nothing else. */
export interface Deps extends PluginContext {
  /** All plugins that there are, chosen or not. */
  registry: PluginRegistry;
  watch: ChallengeWatch;
  keys: Keys;
  sso: SingleSignOn;
  proxies: ProxyTrust;
}

/** What an application listens by, once it does. */
export interface Listener {
  server: Server<unknown> | null;
}

/** The client's address, as far as our own eyes and the proxies that we trust can tell. */
export function addressOf(deps: Deps, request: Request, server: Server<unknown> | null): string {
  return clientAddress(
    server?.requestIP(request)?.address,
    deps.proxies.enabled ? request.headers.get("x-forwarded-for") : null,
    deps.proxies,
  );
}
