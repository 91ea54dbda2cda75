import { type AnyElysia, Elysia } from "elysia";
import { verifyToken } from "../../core/auth/token/verify.ts";
import type { Actor } from "../../core/context.ts";
import { Unauthenticated } from "../../platform/errors.ts";
import type { Deps } from "../deps.ts";
import { refuseOtherMedia } from "../http/body.ts";
import { refuseCondition } from "../http/etag.ts";
import { readCookie } from "./cookie.ts";
import { refuseOtherSites } from "./origin.ts";

/** The cookie in which a client may present its access token. It opens the API, never the pages. */
export const tokenCookie = "svc_auth";

/** What the macro hangs on a route; whoever lists routes looks for the very hook that refuses. */
const guards = new WeakSet<object>();

const verified = new WeakMap<Request, Actor>();

/** Whether the request came with a valid access token, on a route that asks for one. */
export function isAuthenticated(request: Request): boolean {
  return verified.has(request);
}

/** Whether a route answers only to the holder of an access token. */
export function asksForToken({ hooks }: Pick<AnyElysia["routes"][number], "hooks">): boolean {
  const transforms: readonly { fn?: unknown }[] = hooks?.transform ?? [];
  return transforms.some(({ fn }) => typeof fn === "function" && guards.has(fn));
}

/**
 * `{ actor: true }` on a route: it is only for the holder of a good access token, and its handler gets that `actor`.
 * A macro, because an Elysia hook of one plugin leaves routes of the next one open.
 */
export const actorMacro = (deps: Deps) => {
  // Elysia resolves after it has validated: a stranger would be told what is wrong with their request.
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
  // A browser sends a cookie wherever a page of another site points it to; a program says nothing of where it is.
  const reads = request.method === "GET" || request.method === "HEAD";
  if (!reads) refuseOtherSites(deps.config, request);
  return cookie;
}
