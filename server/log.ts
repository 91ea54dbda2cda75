import { Elysia } from "elysia";
import { looksLikeSecret, sha256Hex } from "../core/secret.ts";
import { clientAddress } from "./address.ts";
import type { Deps } from "./deps.ts";
import type { ObservedRequests } from "./metrics/requests.ts";
import { adoptRequestId, requestIdOf } from "./request_id.ts";

/**
 * One line a request: the route's template, never the path (T stands in it) nor the query. A challenge is named by
 * the first 8 hex digits of its hash. Polls are `debug`: each terminal sends one every other second.
 */
export const logRequests = (
  { log, config, proxies }: Pick<Deps, "log" | "config" | "proxies">,
  requests?: ObservedRequests,
) =>
  new Elysia({ name: "log requests" })
    .onRequest(({ request, set, server }) => {
      const given = proxies.enabled ? request.headers.get("x-request-id") : null;
      if (given !== null && proxies.trusts(clientAddress(server?.requestIP(request)?.address, null, proxies)))
        adoptRequestId(request, given);
      set.headers["x-request-id"] = requestIdOf(request);
    })
    .onAfterResponse({ as: "global" }, (context) => {
      const { request, set, params, path, responseValue } = context;
      // Elysia's types do not say so, but what matched nothing has no route.
      const route: string | undefined = context.route;
      const level = route?.startsWith("/noauth/") && path.includes("poller/") ? "debug" : "info";
      if (!config.accessLog || !log.isLevelEnabled(level)) return;
      const trace = requests?.traceOf(request);
      const secret = Object.values((params ?? {}) as Record<string, string>).find(looksLikeSecret);
      log[level](
        {
          request_id: requestIdOf(request),
          ...(trace ? { trace_id: trace } : {}),
          method: request.method,
          route: route || "none",
          status: responseValue instanceof Response ? responseValue.status : set.status,
          ...(secret ? { challenge: sha256Hex(secret).slice(0, 8) } : {}),
        },
        "request",
      );
    });
