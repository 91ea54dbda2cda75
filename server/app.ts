import { type AnyElysia, Elysia } from "elysia";
import { catalog } from "./catalog/all.ts";
import { browserRoutes } from "./challenge/browser.ts";
import { challengeRoutes } from "./challenge/routes.ts";
import type { Deps } from "./deps.ts";
import { contentRoutes } from "./document/content.ts";
import { documentRoutes } from "./document/routes.ts";
import { errorResponse } from "./error.ts";
import { eventRoutes } from "./event/routes.ts";
import { flowRoutes } from "./flow/routes.ts";
import { healthRoutes } from "./health/routes.ts";
import { incidentRoutes } from "./incident/routes.ts";
import { readJson } from "./json.ts";
import { logRequests } from "./log.ts";
import { messageRoutes } from "./message/routes.ts";
import { refuseUnknownQuery } from "./no_query.ts";
import { openApiRoutes } from "./openapi/routes.ts";
import { pageAssets } from "./page/routes.ts";
import { participantRoutes } from "./participant/routes.ts";
import { reportRoutes } from "./report/routes.ts";
import { searchRoutes } from "./search/routes.ts";
import { signInRoutes } from "./sign_in/routes.ts";
import { taskRoutes } from "./task/routes.ts";
import { tokenRoutes } from "./token/routes.ts";
import { whoamiRoutes } from "./whoami/routes.ts";

/** Longer than a poll is held, so that the server does not hang up on one. */
const idleTimeoutSeconds = 60;
const largestBodyBytes = 1024 * 1024;

/** For a request whose Host is missing or none: what it is about cannot be told (RFC 9112, 3.2). */
const noAddress = new Response(
  JSON.stringify({
    status: "invalid_input",
    code: "invalid_input",
    detail: "The Host header is missing or not valid",
  }),
  { status: 400, headers: { "content-type": "application/json", "cache-control": "no-store" } },
);

function isAbsolute(url: string): boolean {
  return url.startsWith("http") && URL.canParse(url);
}

/** The HTTP application, made of nothing but `deps`. The order matters: a hook covers what is registered after it. */
export function createApp(deps: Deps) {
  const challenge = challengeRoutes(deps);
  const app = new Elysia({
    // Bun's own router answers a literal colon in the path differently from Elysia's.
    systemRouter: false,
    // A field or parameter that is not in a schema is refused where the schema says so, not taken away in silence: with
    // `incident_id` misspelled, a document of a Restricted incident would be everybody's.
    normalize: false,
    // Elysia would take a host name of three letters for part of the path.
    handler: { standardHostname: false },
    serve: {
      idleTimeout: idleTimeoutSeconds,
      maxRequestBodySize: largestBodyBytes,
      // Bun's page for developers shows paths, and T stands in ours.
      development: false,
      error: () => new Response(null, { status: 500 }),
    },
  })
    .decorate("drain", nothingToDrain)
    .use(logRequests(deps))
    .onError({ as: "global" }, ({ error, request, set }) => {
      const response = errorResponse(error, request, deps.log);
      // For the log: Elysia has put its own idea of a status there.
      set.status = response.status;
      return response;
    })
    .onParse({ as: "global" }, ({ request, contentType }) => readJson(request, contentType))
    .onBeforeHandle(
      { as: "global" },
      refuseUnknownQuery((): AnyElysia => app),
    )
    .use(healthRoutes(deps))
    .use(pageAssets)
    .use(openApiRoutes(deps.config.publicUrl, (): AnyElysia => app))
    .use(whoamiRoutes(deps))
    .use(tokenRoutes(deps))
    .use(documentRoutes(deps))
    .use(contentRoutes(deps))
    .use(catalog(deps))
    .use(incidentRoutes(deps))
    .use(flowRoutes(deps))
    .use(participantRoutes(deps))
    .use(reportRoutes(deps))
    .use(eventRoutes(deps))
    .use(messageRoutes(deps))
    .use(taskRoutes(deps))
    .use(searchRoutes(deps))
    .use(challenge.routes)
    .use(signInRoutes(deps))
    .use(browserRoutes(deps));
  // Around the application instead of a hook in it: an Elysia hook costs each request more than the answer does.
  return app.wrap((handler, request) => {
    const answer = challenge.pollAtOnce(request, app.server);
    if (answer) return () => answer;
    return isAbsolute(request.url) ? handler : () => noAddress.clone();
  });
}

/**
 * Called before the server stops: ends what would keep its connections busy (held polls are answered `pending`).
 * Elysia's own stop hooks come after the connections have ended.
 */
async function nothingToDrain(): Promise<void> {}

export type App = ReturnType<typeof createApp>;
