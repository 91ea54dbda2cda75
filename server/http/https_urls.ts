import type { AnyElysia } from "elysia";

/**
 * Makes an application find the path in `https://host/path`. Elysia starts looking at a fixed position of the URL. The
 * position that supports short host names (see `createApp`) is one character too early for `https`, so that no path
 * would match. The price is hosts of one or two letters without a port: the application refuses them, since their first
 * path segment would be skipped. Call this before the first request.
 */
export function readHttpsUrls(app: AnyElysia): void {
  app.config.handler = { ...app.config.handler, standardHostname: true };
}
