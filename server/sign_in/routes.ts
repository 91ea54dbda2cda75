import { Elysia } from "elysia";
import { findSession, signInSession } from "../../core/auth/session/session.ts";
import { nameUser } from "../../core/catalog/person/of_actor.ts";
import { NotFound, Unauthenticated } from "../../platform/errors.ts";
import { readCookie, sessionCookie, sessionCookieName } from "../auth/cookie.ts";
import { addressOf, type Deps } from "../deps.ts";
import { redirect } from "../page/page.ts";
import { callbackPath } from "../sso/oidc.ts";

/** The callback from the issuer. */
export function signInRoutes(deps: Deps) {
  const { config, sso } = deps;
  return new Elysia({ name: "sign in" }).get(callbackPath, async ({ request, server }) => {
    if (sso.kind !== "redirect" || request.method !== "GET")
      throw new NotFound("There is nothing at this address");
    const sessionId = readCookie(request, sessionCookieName(config));
    const session = sessionId && (await findSession(deps, sessionId));
    const url = new URL(request.url);
    const finished = session && (await sso.finish({ session, url }));
    if (!finished) {
      // If another tab has signed the session in meanwhile, the browser comes again with its new cookie.
      const isReplaced = sessionId && !(await findSession(deps, sessionId));
      const start = isReplaced ? await sso.startOf(url) : undefined;
      if (start !== undefined) return redirect(start);
      throw new Unauthenticated("This sign-in was not started in this browser, or is already over");
    }
    const { identity, returnTo } = finished;
    const id = await signInSession(deps, { session, identity, address: addressOf(deps, request, server) });
    if (id) await nameUser(deps, identity);
    return redirect(returnTo, id ? { "set-cookie": sessionCookie(config, id) } : {});
  });
}
