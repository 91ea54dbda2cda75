import type { Server } from "bun";
import { type AnyElysia, Elysia } from "elysia";
import { thumbprintOf } from "../../core/auth/certificate/certificate.ts";
import { verifyToken } from "../../core/auth/token/verify.ts";
import type { Actor } from "../../core/context.ts";
import { idOfName, isIncidentName } from "../../core/incident/incident/name.ts";
import { Unauthenticated } from "../../platform/errors.ts";
import type { Deps } from "../deps.ts";
import { readJson, requireConnection } from "../http/body.ts";
import { refuseCondition } from "../http/etag.ts";
import { presentedCertificates } from "./certificate.ts";
import { readCookie } from "./cookie.ts";
import { refuseOtherSites } from "./origin.ts";

/** A client may send its access token in this cookie. It opens the API, never the pages. */
export const tokenCookie = "svc_auth";

/** Its GET finds the incident by its name in the statement that reads it. */
const incidentRoute = "/incidents/:incident_id";

/** Hooks that require a token, so that route listings recognize the very hook that refuses. */
const guards = new WeakSet<object>();

interface Transformed {
  request: Request;
  route: string;
  body?: unknown;
  params?: Record<string, string | undefined>;
  server: Server<unknown> | null;
}

const verified = new WeakMap<Request, Actor>();

/** The user of a request with a valid access token, on a route that requires one. */
export function userOf(request: Request): string | undefined {
  return verified.get(request)?.user;
}

/** Whether a route requires an access token. */
export function asksForToken({ hooks }: Pick<AnyElysia["routes"][number], "hooks">): boolean {
  const transforms: readonly { fn?: unknown }[] = hooks?.transform ?? [];
  return transforms.some(({ fn }) => typeof fn === "function" && guards.has(fn));
}

/**
 * `{ actor: true }` on a route requires a valid access token, and passes the `actor` to its handler. It is a macro,
 * because an Elysia hook of one plugin does not protect routes of the next one.
 */
export const actorMacro = (deps: Deps) => {
  // Not in `resolve`, which Elysia runs after validation: a stranger would learn what is wrong with the request.
  const certificates = presentedCertificates(deps);
  const identify = async (request: Request, server: Server<unknown> | null): Promise<Actor> => {
    const chain = certificates.chainOf(request, server);
    const token = presentedToken(deps, request);
    if (token === undefined) {
      if (!chain) throw new Unauthenticated();
      // A browser chooses a certificate once, and then sends it with requests that another site triggers, too.
      if (!reads(request)) refuseOtherSites(deps.config, request);
      return certificates.identify(chain, request, server);
    }
    const { actor, bound } = await verifyToken(deps, token, chain && thumbprintOf(chain[0]!));
    const until = bound && chain ? await certificates.requireCurrent(chain, request, server) : undefined;
    return until && until < actor.expiresAt ? { ...actor, expiresAt: until } : actor;
  };
  const transform = async (context: Transformed): Promise<void> => {
    const { request, route, params, server } = context;
    const check = async () => verified.set(request, await identify(request, server));
    await check();
    // Only now, so that nothing of a stranger's body is read. A DELETE takes none.
    if (!reads(request)) {
      if (request.method !== "DELETE") {
        context.body = await readJson(request, route);
        // The body may have taken minutes to arrive.
        await check();
      }
      await requireConnection(request);
    }
    refuseCondition(request, context.body);
    const named = params?.incident_id;
    const isFound = route === incidentRoute && reads(request);
    if (params && named !== undefined && isIncidentName(named) && !isFound)
      params.incident_id = String(await idOfName(deps, named));
  };
  guards.add(transform);
  return new Elysia({ name: "actor" }).macro({
    actor: {
      transform,
      resolve({ request }): { actor: Actor } {
        const actor = verified.get(request);
        if (!actor) throw new Unauthenticated();
        return { actor };
      },
    },
  });
};

const reads = ({ method }: Request) => method === "GET" || method === "HEAD";

/** @throws Unauthenticated for another Authorization header @throws Forbidden for a cookie from another site */
function presentedToken(deps: Deps, request: Request): string | undefined {
  const authorization = request.headers.get("authorization");
  if (authorization !== null) {
    const [, token] = authorization.match(/^Bearer +(.+)$/i) ?? [];
    if (!token) throw new Unauthenticated("The Authorization header is not `Bearer <access token>`");
    return token;
  }
  const cookie = readCookie(request, tokenCookie);
  if (!cookie) return undefined;
  // A browser also sends the cookie with requests that another site triggers; other clients send no site headers.
  if (!reads(request)) refuseOtherSites(deps.config, request);
  return cookie;
}
