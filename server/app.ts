import { type AnyElysia, Elysia } from "elysia";
import { webRoutes } from "../web/routes.tsx";
import { accessRoutes } from "./access/routes.ts";
import { affectedRoutes } from "./affected/routes.ts";
import { auditRoutes } from "./audit/routes.ts";
import { authorityRoutes } from "./authority/routes.ts";
import { catalog } from "./catalog/catalog.ts";
import { certificateRoutes } from "./certificate/routes.ts";
import { browserRoutes } from "./challenge/browser.ts";
import { challengeRoute, challengeRoutes } from "./challenge/routes.ts";
import type { BoundServer, Deps } from "./deps.ts";
import { contentRoutes } from "./document/content.ts";
import { documentRoutes } from "./document/routes.ts";
import { eventRoutes } from "./event/routes.ts";
import { flowRoutes } from "./flow/routes.ts";
import { ReadinessCheck, watchDisk } from "./health/readiness.ts";
import { healthRoutes } from "./health/routes.ts";
import { noParsers } from "./http/body.ts";
import { answerErrors } from "./http/error.ts";
import { addressCheck, headTooLarge, noAddress } from "./http/host.ts";
import { logRequests } from "./http/log.ts";
import { ObservedRequests, observeRoutes } from "./http/metrics.ts";
import { refuseUnknownQuery } from "./http/no_query.ts";
import { SecurityHeaders } from "./http/security_headers.ts";
import { acceptLargeHeads, isHeadTooLarge, maxRequestBodySize } from "./http/size.ts";
import { incidentRoutes } from "./incident/routes.ts";
import { linkRoutes } from "./link/routes.ts";
import { messageRoutes } from "./message/routes.ts";
import { openApiRoutes } from "./openapi/routes.ts";
import { redirect } from "./page/page.ts";
import { pageAssets } from "./page/routes.ts";
import { participantRoutes } from "./participant/routes.ts";
import { postmortemRoutes } from "./postmortem/routes.ts";
import { reportRoutes } from "./report/routes.ts";
import { searchRoutes } from "./search/routes.ts";
import { signInsRoutes } from "./sign_in/list.ts";
import { signInRoutes } from "./sign_in/routes.ts";
import { staticRoutes } from "./static/routes.ts";
import { statsRoutes } from "./stats/routes.ts";
import { streamRoutes } from "./stream/routes.ts";
import { IncidentStreams } from "./stream/streams.ts";
import { taskRoutes } from "./task/routes.ts";
import { tokenRoutes } from "./token/routes.ts";
import { weepRoutes } from "./weep/routes.ts";
import { whoamiRoutes } from "./whoami/routes.ts";

/** Longer than a poll is held, so that the server does not close its connection. */
const idleTimeoutSeconds = 60;

type Handler = (request: Request) => Response | Promise<Response>;

/** The API's routes, in the order of the OpenAPI document. The types of all of them would take the compiler to its limits. */
const apiRoutes = (
  deps: Deps,
  health: ReturnType<typeof healthRoutes>,
  challenge: ReturnType<typeof challengeRoutes>["routes"],
  streams: IncidentStreams,
): AnyElysia =>
  new Elysia({ name: "api" })
    .use(health)
    .use(pageAssets)
    .use(whoamiRoutes(deps))
    .use(tokenRoutes(deps))
    .use(documentRoutes(deps))
    .use(contentRoutes(deps))
    .use(catalog(deps))
    .use(incidentRoutes(deps))
    .use(flowRoutes(deps))
    .use(participantRoutes(deps))
    .use(reportRoutes(deps))
    .use(postmortemRoutes(deps))
    .use(eventRoutes(deps))
    .use(linkRoutes(deps))
    .use(affectedRoutes(deps))
    .use(streamRoutes(deps, streams))
    .use(messageRoutes(deps))
    .use(taskRoutes(deps))
    .use(searchRoutes(deps))
    .use(statsRoutes(deps))
    .use(accessRoutes(deps))
    .use(weepRoutes(deps))
    .use(authorityRoutes(deps))
    .use(certificateRoutes(deps))
    .use(signInsRoutes(deps))
    .use(auditRoutes(deps))
    .use(challenge)
    .use(signInRoutes(deps))
    .use(browserRoutes(deps))
    .use(webRoutes(deps, streams))
    .use(rootRoute(deps));

/** A front end of one's own has this address. */
const rootRoute = ({ config }: Deps) =>
  config.staticDir === undefined
    ? new Elysia({ name: "root" }).get("/", () => redirect("/app"))
    : new Elysia({ name: "root" });

/** Creates the HTTP application from `deps` alone, with the functions that its process may call. */
export function createApp(deps: Deps) {
  const challenge = challengeRoutes(deps);
  const presence = { leaving: false };
  const readiness = new ReadinessCheck(deps);
  const bound: BoundServer = { server: null };
  const security = new SecurityHeaders(deps.proxies, bound);
  const requests = deps.telemetry && new ObservedRequests(deps.telemetry);
  const streams = new IncidentStreams(deps);
  streams.subscribeTo(deps.listener);
  const api = apiRoutes(deps, healthRoutes(readiness, presence), challenge.routes, streams);
  const openApi = openApiRoutes(deps.config.publicUrl, api);
  const routes = [...api.routes, ...openApi.routes];
  acceptLargeHeads();
  const app = new Elysia({
    // Bun's own router treats a literal colon in the path differently from Elysia's.
    systemRouter: false,
    // Refuse unknown fields and parameters as the schema says instead of dropping them silently: with `incident_id`
    // misspelled, a document of a Restricted incident would become public.
    normalize: false,
    // Otherwise Elysia would take a host name of three letters for part of the path.
    handler: { standardHostname: false },
    serve: {
      idleTimeout: idleTimeoutSeconds,
      maxRequestBodySize,
      // Bun's development page shows paths, and ours contain T.
      development: false,
      error: () => new Response(null, { status: 500 }),
    },
  })
    .onStart(({ server }) => {
      bound.server = server;
    })
    // The order matters: a hook covers only what is registered after it. Elysia analyses the source of hooks: one that
    // is async or mentions `server` makes each request of every route slower.
    .use(security.hook())
    .use(logRequests(deps, bound, requests))
    .use(observeRoutes(requests))
    .use(watchDisk(readiness))
    .use(answerErrors(deps, routes))
    .use(staticRoutes(deps.config.staticDir, routes))
    .use(refuseUnknownQuery(routes))
    .use(noParsers)
    .use(openApi)
    .use(api);
  const hasAddress = addressCheck();
  /** Bun adds this header to the answers of all methods but HEAD. */
  const dated = (answer: Response) => {
    answer.headers.set("date", deps.clock.now().toUTCString());
    return answer;
  };
  // Around the application, because an Elysia hook costs each request more than the answer itself.
  app.wrap((handler, request) => {
    const answer = challenge.pollAtOnce(request, app.server);
    if (answer) {
      requests?.atOnce(request, challengeRoute, answer);
      return () => security.addHsts(answer, request);
    }
    // Elysia types a handler only as a function.
    const refusal = !hasAddress(request) ? noAddress : isHeadTooLarge(request) ? headTooLarge : undefined;
    const answered =
      refusal === undefined ? (handler as unknown as Handler) : () => security.add(refusal.clone(), request);
    const next =
      request.method === "HEAD" ? async (inner: Request) => dated(await answered(inner)) : answered;
    return requests ? (inner: Request) => requests.around(inner, () => next(inner)) : next;
  });
  return {
    app,
    leave() {
      presence.leaving = true;
    },
    // Streams end, requests that wait for a plugin are released, and started work is released.
    drain: async () => {
      streams.close();
      deps.watch.stop();
      await Promise.all([deps.listener.stop(), deps.background?.stop()]);
    },
    untilReady: () => readiness.untilReady(),
    refused: requests && ((request: Request, answer: Response) => requests.outside(request, answer)),
  };
}

export type App = ReturnType<typeof createApp>["app"];
