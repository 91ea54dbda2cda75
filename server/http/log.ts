import { Elysia } from "elysia";
import { LogBudget } from "../../platform/log_budget.ts";
import { looksLikeSecret, sha256Hex } from "../../platform/secret.ts";
import { userOf } from "../auth/actor.ts";
import { addressOf, type BoundServer, type Deps } from "../deps.ts";
import { clientAddress } from "./address.ts";
import type { ObservedRequests } from "./metrics.ts";

/** Log lines per route, status and minute for requests without a valid token; the others are counted. */
const refusalsPerMinute = 60;
const answersPerMinute = 600;

/**
 * Gives each request an id and one log line with the route's template, never the path (it may contain T) or the query.
 * A challenge appears as the first 8 hex digits of its hash. Requests that machines send every few seconds are logged at
 * `debug`: polls, and health checks that succeed.
 */
export const logRequests = (
  deps: Pick<Deps, "log" | "config" | "proxies" | "clock">,
  bound: BoundServer,
  requests?: ObservedRequests,
) => {
  const { log, config, proxies, clock } = deps;
  const refused = new LogBudget(log, clock, "requests", refusalsPerMinute);
  const answered = new LogBudget(log, clock, "requests", answersPerMinute);
  /** Whether a stranger's request still gets a log line. */
  const admits = (route: string, status: number) =>
    (status >= 400 ? refused : answered).admits(`${route} ${status}`, { route, status });
  const idFromProxy = (request: Request): string | undefined => {
    const id = request.headers.get("x-request-id");
    if (id === null || !looksLikeRequestId(id)) return undefined;
    const peer = clientAddress(bound.server?.requestIP(request)?.address, null, proxies);
    return proxies.trusts(peer) ? id : undefined;
  };
  /** Noted at once, because a request that was answered has no connection any more. */
  const begun = new WeakMap<Request, { at: number; address: string }>();
  const note = (request: Request) =>
    begun.set(request, { at: performance.now(), address: addressOf(deps, request, bound.server) });
  return new Elysia({ name: "log requests" })
    .onRequest(({ request, set }) => {
      if (config.accessLog) note(request);
      set.headers[idHeader] = (proxies.enabled && idFromProxy(request)) || newRequestId();
    })
    .onAfterResponse({ as: "global" }, (context) => {
      const { request, set, params, path, responseValue } = context;
      // Despite Elysia's types, a request that matched nothing has no route.
      const route: string | undefined = context.route;
      const status = Number(responseValue instanceof Response ? responseValue.status : (set.status ?? 200));
      const isPoll = route?.startsWith("/noauth/") && path.includes("poller/");
      const level = isPoll || (route === "/healthcheck" && status === 200) ? "debug" : "info";
      if (!config.accessLog || !log.isLevelEnabled(level)) return;
      const user = userOf(request);
      if (level === "info" && user === undefined && !admits(route || "none", status)) return;
      const begin = begun.get(request);
      // Undefined values are left out of the line.
      const line = {
        request_id: requestIdOf(set),
        trace_id: requests?.traceOf(request),
        method: request.method,
        route: route || "none",
        status,
        duration_ms: begin && Math.round((performance.now() - begin.at) * 10) / 10,
        user,
        address: begin?.address,
        challenge: challengeIn(params),
      };
      log[level](line, "request");
    })
    .onStop(() => {
      refused.report();
      answered.report();
    });
};

function challengeIn(params: Readonly<Record<string, string | undefined>> | undefined): string | undefined {
  for (const name in params) {
    const value = params[name];
    if (value && looksLikeSecret(value)) return sha256Hex(value).slice(0, 8);
  }
  return undefined;
}

/** Receives failed requests. */
export type FailureLog = Record<
  "warn" | "error",
  (fields: { err: unknown; request_id: string }, text: string) => void
>;

const failuresPerMinute = 60;

/**
 * The rate-limited log for failed requests, each with a stack: while the database is down, anybody can cause any number
 * of them.
 */
export function failureLog({ log, clock }: Pick<Deps, "log" | "clock">): FailureLog & { report(): void } {
  const budget = new LogBudget(log, clock, "failed requests", failuresPerMinute);
  const write: (level: "warn" | "error") => FailureLog["warn"] = (level) => (fields, text) => {
    const error = fields.err instanceof Error ? fields.err.name : typeof fields.err;
    if (budget.admits(`${text} ${error}`, { failure: text, error })) log[level](fields, text);
  };
  return { warn: write("warn"), error: write("error"), report: () => budget.report() };
}

const idHeader = "x-request-id";

/** The id of the request that `set` belongs to. */
export function requestIdOf({ headers }: { headers: Record<string, string | number | undefined> }): string {
  return String(headers[idHeader]);
}

const prefix = crypto.randomUUID().slice(0, 13);
let count = 0;

/** Creates an id for the log, the answer's header and a problem's body: process and number. */
function newRequestId(): string {
  count += 1;
  return `${prefix}-${count.toString(36)}`;
}

/**
 * Whether a request id from a proxy may be used, so that both logs have the same id. Anything unusual is ignored,
 * because it would appear in our log, in a header and on a page.
 */
function looksLikeRequestId(id: string): boolean {
  return /^[\w.:/+=@-]{1,128}$/.test(id);
}
