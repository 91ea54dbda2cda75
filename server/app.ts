import { type AnyElysia, Elysia } from "elysia";
import { isOutOfSpace } from "../drizzle/database_error.ts";
import { catalog } from "./catalog/all.ts";
import { browserRoutes } from "./challenge/browser.ts";
import { challengeRoute, challengeRoutes } from "./challenge/routes.ts";
import type { Deps, ServerNow } from "./deps.ts";
import { contentRoutes } from "./document/content.ts";
import { documentRoutes } from "./document/routes.ts";
import { eventRoutes } from "./event/routes.ts";
import { flowRoutes } from "./flow/routes.ts";
import { ReadinessCheck } from "./health/readiness.ts";
import { healthRoutes } from "./health/routes.ts";
import { errorAnswer } from "./http/error.ts";
import { largestTextBytes, readJson } from "./http/json.ts";
import { failureLog, logRequests } from "./http/log.ts";
import { resolveMethodError } from "./http/methods.ts";
import { ObservedRequests, tellRoutes } from "./http/metrics.ts";
import { OptionalBodies } from "./http/no_body.ts";
import { refuseUnknownQuery } from "./http/no_query.ts";
import { SecurityHeaders } from "./http/security_headers.ts";
import { incidentRoutes } from "./incident/routes.ts";
import { messageRoutes } from "./message/routes.ts";
import { openApiRoutes } from "./openapi/routes.ts";
import { pageAssets } from "./page/routes.ts";
import { participantRoutes } from "./participant/routes.ts";
import { reportRoutes } from "./report/routes.ts";
import { searchRoutes } from "./search/routes.ts";
import { signInRoutes } from "./sign_in/routes.ts";
import { staticRoutes } from "./static/routes.ts";
import { taskRoutes } from "./task/routes.ts";
import { tokenRoutes } from "./token/routes.ts";
import { whoamiRoutes } from "./whoami/routes.ts";

/** Longer than a poll is held, so that the server does not hang up on one. */
const idleTimeoutSeconds = 60;

/** For a request whose Host is missing, none, or there twice: what it is about cannot be told (RFC 9112, 3.2). */
const noAddress = new Response(
  JSON.stringify({
    status: "invalid_input",
    code: "invalid_input",
    detail: "The Host header is missing or not valid",
  }),
  // What follows on the connection may be for another host, too.
  {
    status: 400,
    headers: { "content-type": "application/json", "cache-control": "no-store", connection: "close" },
  },
);

/** What a URL that can be read begins with, as long as it is of nothing but plain characters. */
const origin = /^https?:\/\/[\w.:[\]-]+\//;

/** Over TLS, Elysia would take the first name of the path for part of a host as short as this: see `readHttpsUrls`. */
const shortHost = /^https:\/\/[^/]{1,2}\//;

/** Judges addresses, for which most come to the same host: behind one that can be read, every path can. */
function judgeAddress(): (request: Request) => boolean {
  let known: string | undefined;
  return ({ url, headers }) => {
    if (known === undefined || !url.startsWith(known)) {
      if (!url.startsWith("http") || shortHost.test(url) || !URL.canParse(url)) return false;
      known = origin.exec(url)?.[0];
    }
    return !headers.get("host")?.includes(",");
  };
}

type Handler = (request: Request) => Response | Promise<Response>;

/** The HTTP application, made of nothing but `deps`. The order matters: a hook covers what is registered after it. */
export function createApp(deps: Deps) {
  const challenge = challengeRoutes(deps);
  const presence = { leaving: false };
  const readiness = new ReadinessCheck(deps);
  const methodError = resolveMethodError((): AnyElysia => app);
  const server: ServerNow = () => app.server;
  const bodies = new OptionalBodies((): AnyElysia => app);
  const hasAddress = judgeAddress();
  const security = new SecurityHeaders(deps.proxies, server);
  const failures = failureLog(deps);
  const requests = deps.telemetry && new ObservedRequests(deps.telemetry);
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
      maxRequestBodySize: largestTextBytes,
      // Bun's page for developers shows paths, and T stands in ours.
      development: false,
      error: () => new Response(null, { status: 500 }),
    },
  })
    // Elysia reads the text of hooks: one that waits, or names its `server`, costs each request of every route.
    .onRequest(({ request, set }) => {
      set.headers = security.of(request);
    })
    .use(logRequests(deps, server, requests))
    .use(tellRoutes(requests))
    .onStop(() => failures.report())
    .onError({ as: "global" }, ({ error, request, requestId, path, route, set }) => {
      requests?.matched(request, route);
      if (isOutOfSpace(error)) readiness.doubtDisk();
      const resolved = methodError(error, request, path, route);
      const answer =
        resolved instanceof Response ? resolved : errorAnswer(resolved, path, requestId, failures);
      // For the log, too: Elysia has put its own idea of a status there.
      set.status = answer.status;
      if (answer instanceof Response) return answer;
      Object.assign(set.headers, answer.headers);
      return answer.body;
    })
    // Before the parser: whatever the body, a file takes none.
    .use(staticRoutes(deps.config.staticDir, (): AnyElysia => app))
    .onParse({ as: "global" }, ({ request, route }) => bodies.read({ request, route }))
    .onParse({ as: "global" }, ({ request, contentType, route }) => readJson(request, contentType, route))
    .onBeforeHandle(
      { as: "global" },
      refuseUnknownQuery((): AnyElysia => app),
    )
    .onBeforeHandle({ as: "global" }, ({ request, route, body }) => {
      bodies.check({ request, route, body });
    })
    .use(healthRoutes(readiness, presence))
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
  app.wrap((handler, request) => {
    const answer = challenge.pollAtOnce(request, app.server);
    if (answer) {
      requests?.atOnce(request, challengeRoute, answer);
      return () => security.add(answer, request);
    }
    // Elysia's types say no more of a handler than that it is a function.
    const next = hasAddress(request)
      ? (handler as unknown as Handler)
      : () => security.add(noAddress.clone(), request);
    return requests ? (inner: Request) => requests.around(inner, () => next(inner)) : next;
  });
  return {
    app,
    leave() {
      presence.leaving = true;
    },
    // Requests that wait for a plugin need not any more, and what was begun is given back.
    drain: async () => void (await Promise.all([deps.watch.stop(), deps.background?.stop()])),
    untilReady: () => readiness.untilReady(),
    refused: requests && ((request: Request, answer: Response) => requests.outside(request, answer)),
  };
}

export type App = ReturnType<typeof createApp>["app"];
