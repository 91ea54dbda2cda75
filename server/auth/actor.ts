import { type AnyElysia, Elysia } from "elysia";
import { verifyToken } from "../../core/auth/token/verify.ts";
import type { Actor } from "../../core/context.ts";
import { Unauthenticated } from "../../platform/errors.ts";
import type { Deps } from "../deps.ts";
import { refuseOtherMedia } from "../http/body.ts";
import { refuseCondition } from "../http/etag.ts";
import { readCookie } from "./cookie.ts";
import { refuseOtherSites } from "./origin.ts";

/** A client may send its access token in this cookie. It opens the API, never the pages. */
export const tokenCookie = "svc_auth";

/** Hooks that require a token, so that route listings recognize the very hook that refuses. */
const guards = new WeakSet<object>();

const verified = new WeakMap<Request, Actor>();

/** Whether the request has a valid access token, on a route that requires one. */
export function isAuthenticated(request: Request): boolean {
  return verified.has(request);
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
  const transform = async ({ request, body }: { request: Request; body?: unknown }): Promise<void> => {
    verified.set(request, await verifyToken(deps, presentedToken(deps, request)));
    refuseOtherMedia(request, body);
    refuseCondition(request, body);
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

function presentedToken(deps: Deps, request: Request): string {
  const authorization = request.headers.get("authorization");
  if (authorization !== null) {
    const [, token] = authorization.match(/^Bearer +([\w.~+/-]+=*)$/i) ?? [];
    if (!token) throw new Unauthenticated("The Authorization header is not `Bearer <access token>`");
    return token;
  }
  const cookie = readCookie(request, tokenCookie);
  if (!cookie) throw new Unauthenticated();
  // A browser also sends the cookie with requests that another site triggers; other clients send no site headers.
  const reads = request.method === "GET" || request.method === "HEAD";
  if (!reads) refuseOtherSites(deps.config, request);
  return cookie;
}
