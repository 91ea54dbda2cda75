import { Elysia } from "elysia";
import type { ObservedRequests } from "../http/metrics.ts";

/** Tells which route a request has matched; without anybody to tell, it has no hook and costs nothing. */
export const tellRoutes = (requests: ObservedRequests | undefined) => {
  const app = new Elysia({ name: "tell routes" });
  return requests
    ? app.onTransform({ as: "global" }, ({ request, route }) => requests.matched(request, route))
    : app;
};
