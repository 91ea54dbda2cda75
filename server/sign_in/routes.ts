import { Elysia } from "elysia";
import { endAtLogout } from "../../core/auth/session/issuer_session.ts";
import { findSession, signInSession } from "../../core/auth/session/session.ts";
import { nameUser } from "../../core/catalog/person/of_actor.ts";
import { addressScope } from "../../platform/address.ts";
import { InvalidInput, NotFound, noRoute, TooManyRequests, Unauthenticated } from "../../platform/errors.ts";
import { LogBudget } from "../../platform/log_budget.ts";
import { RateLimit } from "../../platform/rate_limit.ts";
import { readCookie, sessionCookie, sessionCookieName } from "../auth/cookie.ts";
import { addressOf, type Deps } from "../deps.ts";
import { readForm, requireConnection } from "../http/body.ts";
import { usualHeaders } from "../http/security_headers.ts";
import { largestLogoutBytes } from "../http/size.ts";
import { redirect } from "../page/page.ts";
import { callbackPath } from "../sso/oidc.ts";

/** Where the issuer reports that a sign-in has ended; register it there as `<public url>/backchannel_logout`. */
const logoutPath = "/backchannel_logout";
/** Of one address. Fewer than the requests for keys that they may cause, so that nobody can use those up alone. */
const refusedLogoutsPerMinute = 10;

/** The requests from the issuer: the callback through the browser, and the end of a sign-in. */
export function signInRoutes(deps: Deps) {
  const { config, clock, log, sso } = deps;
  const refusals = new RateLimit(clock, refusedLogoutsPerMinute, refusedLogoutsPerMinute);
  const refused = new LogBudget(log, clock, "logout tokens", refusedLogoutsPerMinute);
  return new Elysia({ name: "sign in" })
    .get(callbackPath, async ({ request, server }) => {
      if (sso.kind !== "redirect" || request.method !== "GET") throw new NotFound(noRoute);
      const sessionId = readCookie(request, sessionCookieName(config));
      const session = sessionId && (await findSession(deps, sessionId));
      const url = new URL(request.url);
      const finished = session && (await sso.finish({ session, url }));
      if (!finished) {
        // If another tab has signed the session in meanwhile, the browser returns with its new cookie.
        const isReplaced = sessionId && !(await findSession(deps, sessionId));
        const start = isReplaced ? await sso.startOf(url) : undefined;
        if (start !== undefined) return redirect(start);
        throw new Unauthenticated("This sign-in was not started in this browser, or is already over");
      }
      const { returnTo, ...signedIn } = finished;
      const address = addressOf(deps, request, server);
      const id = await signInSession(deps, { session, ...signedIn, address });
      if (id) await nameUser(deps, signedIn.identity);
      return redirect(returnTo, id ? { "set-cookie": sessionCookie(config, id) } : {});
    })
    .post(logoutPath, async ({ request, server }) => {
      if (sso.kind !== "redirect") throw new NotFound(noRoute);
      const address = addressOf(deps, request, server);
      // Only refused tokens count: the issuer may end the sign-ins of many users at once.
      const bucket = refusals.bucket(addressScope(address));
      const retryAfter = refusals.wait(bucket, clock.now());
      if (retryAfter > 0) throw new TooManyRequests(retryAfter);
      try {
        const form = await readForm(request, largestLogoutBytes);
        await requireConnection(request);
        const logout = await sso.verifyLogout(form.get("logout_token") ?? "");
        await endAtLogout(deps, logout, address);
        return new Response(null, { headers: usualHeaders });
      } catch (error) {
        if (!(error instanceof InvalidInput)) throw error;
        refusals.takeFrom(bucket, clock.now());
        if (refused.admits("refused", {}))
          log.warn({ err: error, address }, "a logout token of the sign-in provider was refused");
        // As OpenID Connect Back-Channel Logout, 2.8, prescribes.
        const body = { error: "invalid_request", error_description: error.detail };
        return Response.json(body, { status: 400, headers: usualHeaders });
      }
    });
}
