import { Elysia } from "elysia";
import { browserRoutes } from "./challenge/browser.ts";
import { challengeRoutes } from "./challenge/routes.ts";
import type { Deps } from "./deps.ts";
import { errorResponse } from "./error.ts";
import { healthRoutes } from "./health/routes.ts";
import { logRequests } from "./log.ts";
import { pageAssets } from "./page/routes.ts";
import { signInRoutes } from "./sign_in/routes.ts";
import { tokenRoutes } from "./token/routes.ts";
import { whoamiRoutes } from "./whoami/routes.ts";

/** Longer than a poll is held, so that the server does not hang up on one. */
const idleTimeoutSeconds = 60;
const largestBodyBytes = 1024 * 1024;

/** The HTTP application, made of nothing but `deps`. The order matters: a hook covers what is registered after it. */
export function createApp(deps: Deps) {
  const challenge = challengeRoutes(deps);
  const app = new Elysia({
    // Bun's own router answers a literal colon in the path differently from Elysia's.
    systemRouter: false,
    serve: { idleTimeout: idleTimeoutSeconds, maxRequestBodySize: largestBodyBytes },
  })
    .decorate("drain", nothingToDrain)
    .use(logRequests(deps.log))
    .onError({ as: "global" }, ({ error, request }) => errorResponse(error, request, deps.log))
    .use(healthRoutes(deps))
    .use(pageAssets)
    .use(whoamiRoutes(deps))
    .use(tokenRoutes(deps))
    .use(challenge.routes)
    .use(signInRoutes(deps))
    .use(browserRoutes(deps));
  // Around the application instead of a hook in it: an Elysia hook costs each request more than the answer does.
  return app.wrap((handler, request) => {
    const answer = challenge.pollAtOnce(request, app.server);
    return answer ? () => answer : handler;
  });
}

/**
 * Called before the server stops: ends what would keep its connections busy (held polls are answered `pending`).
 * Elysia's own stop hooks come after the connections have ended.
 */
async function nothingToDrain(): Promise<void> {}

export type App = ReturnType<typeof createApp>;
