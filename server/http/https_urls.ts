import type { AnyElysia } from "elysia";

/**
 * Has an application find the path in `https://host/path`. Elysia looks for it from a fixed place of the URL on: from the
 * one that spares short names of hosts (see `createApp`), `https` is a letter too long, and every path leads nowhere. Hosts
 * of one or two letters, without a port, are the price: the application refuses them, or the first name of their paths
 * would be passed over. To be said before it answers anything.
 */
export function readHttpsUrls(app: AnyElysia): void {
  app.config.handler = { ...app.config.handler, standardHostname: true };
}
