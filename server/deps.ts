import type { Server } from "bun";
import type { ChallengeWatch } from "../core/auth/challenge/watch.ts";
import type { Keys } from "../core/auth/token/keys.ts";
import type { KnownTokens } from "../core/known_tokens.ts";
import type { AppContext } from "../core/plugin/context.ts";
import type { PluginRegistry } from "../core/plugin/registry.ts";
import type { Listener } from "../drizzle/connection/listener.ts";
import type { OrganisationAuthorities } from "../platform/x509/authorities.ts";
import type { ProxyTrust } from "./http/address.ts";
import { clientAddress } from "./http/address.ts";
import type { SingleSignOn } from "./sso/sso.ts";

/** Everything that the application depends on; `createApp` reads nothing else. */
export interface Deps extends AppContext {
  /** All installed plugins, configured or not. */
  registry: PluginRegistry;
  /** The listening connection of this process. Subscribe before it starts. */
  listener: Listener;
  watch: ChallengeWatch;
  /** When a statement last succeeded, by performance.now(). */
  databaseAnswer: { at: number };
  keys: Keys;
  tokens: KnownTokens;
  sso: SingleSignOn;
  proxies: ProxyTrust;
  /** Whose client certificates stand for users, besides ours. */
  organisation: OrganisationAuthorities;
}

/** The server that an application listens with, once it is known. */
export interface BoundServer {
  server: Server<unknown> | null;
}

/** The client's address, as seen by this server and the proxies it trusts. */
export function addressOf(
  { proxies }: Pick<Deps, "proxies">,
  request: Request,
  server: Server<unknown> | null,
): string {
  return clientAddress(
    server?.requestIP(request)?.address,
    proxies.enabled ? request.headers.get("x-forwarded-for") : null,
    proxies,
  );
}
