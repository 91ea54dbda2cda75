import { Elysia } from "elysia";
import { looksLikeSecret, sha256Hex } from "../core/secret.ts";
import { clientAddress } from "./address.ts";
import type { Deps, ServerNow } from "./deps.ts";
import type { ObservedRequests } from "./metrics/requests.ts";
import { looksLikeRequestId, newRequestId } from "./request_id.ts";

/**
 * Gives each request its id, and one line: the route's template, never the path (T stands in it) nor the query. A
 * challenge is named by the first 8 hex digits of its hash. Polls are `debug`: each terminal sends one every other second.
 */
export const logRequests = (
  { log, config, proxies }: Pick<Deps, "log" | "config" | "proxies">,
  server: ServerNow,
  requests?: ObservedRequests,
) => {
  const idFromProxy = (request: Request): string | undefined => {
    const id = request.headers.get("x-request-id");
    if (id === null || !looksLikeRequestId(id)) return undefined;
    const peer = clientAddress(server()?.requestIP(request)?.address, null, proxies);
    return proxies.trusts(peer) ? id : undefined;
  };
  return new Elysia({ name: "log requests" })
    .decorate("requestId", "")
    .onRequest((context) => {
      const { request, set } = context;
      const id = (proxies.enabled && idFromProxy(request)) || newRequestId();
      context.requestId = id;
      set.headers["x-request-id"] = id;
    })
    .onAfterResponse({ as: "global" }, (context) => {
      const { request, requestId, set, params, path, responseValue } = context;
      // Elysia's types do not say so, but what matched nothing has no route.
      const route: string | undefined = context.route;
      const level = route?.startsWith("/noauth/") && path.includes("poller/") ? "debug" : "info";
      if (!config.accessLog || !log.isLevelEnabled(level)) return;
      // What is undefined is no part of the line.
      const line = {
        request_id: requestId,
        trace_id: requests?.traceOf(request),
        method: request.method,
        route: route || "none",
        status: responseValue instanceof Response ? responseValue.status : set.status,
        challenge: challengeIn(params),
      };
      log[level](line, "request");
    });
};

function challengeIn(params: Readonly<Record<string, string | undefined>> | undefined): string | undefined {
  for (const name in params) {
    const value = params[name];
    if (value && looksLikeSecret(value)) return sha256Hex(value).slice(0, 8);
  }
  return undefined;
}
