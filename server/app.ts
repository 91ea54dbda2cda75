import { Elysia } from "elysia";
import { browserRoutes } from "./challenge/browser.ts";
import { challengeRoutes } from "./challenge/routes.ts";
import type { Deps } from "./deps.ts";
import { faultOf, problemResponse } from "./error.ts";
import { healthRoutes } from "./health/routes.ts";
import { logRequests } from "./log.ts";
import { pageAssets } from "./page/routes.ts";
import { requestIdOf } from "./request_id.ts";
import { signInRoutes } from "./sign_in/routes.ts";
import { tokenRoutes } from "./token/routes.ts";
import { whoamiRoutes } from "./whoami/routes.ts";

/** Longer than a poll is held, so that the server does not hang up on one. */
const idleTimeoutSeconds = 60;
const largestBodyBytes = 1024 * 1024;

/** The HTTP application, made of nothing but `deps`. The order matters: a hook covers what is registered after it. */
export function createApp(deps: Deps) {
  return (
    new Elysia({
      // Bun's own router answers a literal colon in the path differently from Elysia's.
      systemRouter: false,
      serve: { idleTimeout: idleTimeoutSeconds, maxRequestBodySize: largestBodyBytes },
    })
      .use(logRequests(deps.log))
      .onError({ as: "global" }, ({ error, request }) => {
        const requestId = requestIdOf(request);
        return problemResponse(faultOf(error, deps.log, requestId), requestId);
      })
      .use(healthRoutes(deps))
      .use(pageAssets)
      .use(whoamiRoutes(deps))
      .use(tokenRoutes(deps))
      .use(challengeRoutes(deps))
      .use(signInRoutes(deps))
      .use(browserRoutes(deps))
  );
}

export type App = ReturnType<typeof createApp>;
