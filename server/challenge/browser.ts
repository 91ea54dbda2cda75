import { Elysia, t } from "elysia";
import { decideChallenge } from "../../core/auth/challenge/decide.ts";
import { findOpened, openChallenge } from "../../core/auth/challenge/open.ts";
import { type Challenge, stateOf } from "../../core/auth/challenge/state.ts";
import {
  findSession,
  isCsrfToken,
  isSignedIn,
  type Session,
  type SignedInSession,
  signInSession,
  signOutSession,
} from "../../core/auth/session/session.ts";
import { nameUser } from "../../core/catalog/person/of_actor.ts";
import { Conflict, Forbidden, InvalidInput, NotFound, TooManyRequests } from "../../platform/errors.ts";
import { RateLimit } from "../../platform/rate_limit.ts";
import {
  approvePage,
  endPage,
  otherUserPage,
  signInAgainPage,
  unknownPage,
} from "../../web/pages/sign_in.tsx";
import { readCookie, sessionCookie, sessionCookieName } from "../auth/cookie.ts";
import { isLookAhead, requireClick, requireOwnOrigin } from "../auth/origin.ts";
import { addressOf, type Deps } from "../deps.ts";
import { readForm, requireConnection } from "../http/body.ts";
import { largestFormBytes, refuseLongBody } from "../http/size.ts";
import { inTime, redirect } from "../page/page.ts";

/** Each single sign-on attempt costs a row here and a visit at the issuer. */
const attemptsPerMinute = 10;

/** A browser's session with a challenge that it opened. */
interface Visit {
  sessionId: string;
  session: Session;
  challenge: Challenge;
  address: string;
}

const takesForm = {
  transform: ({ request }: { request: Request }) => refuseLongBody(request, largestFormBytes),
};
const uuid = t.Object({ id: t.String({ pattern: "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$" }) });

/**
 * The browser's side of a challenge (docs/protocol.md). T is used once, to bind the challenge to this browser; after
 * that the URL is `/approve/<id>`, which opens nothing without the session cookie.
 */
export function browserRoutes(deps: Deps) {
  const { config, clock, sso } = deps;
  const attempts = new RateLimit(clock, attemptsPerMinute, attemptsPerMinute);

  async function visit(id: string, request: Request, address: string): Promise<Visit | undefined> {
    const sessionId = readCookie(request, sessionCookieName(config));
    const session = sessionId && (await findSession(deps, sessionId));
    if (!session) return undefined;
    const challenge = await findOpened(deps, { id, session, address });
    return challenge && { sessionId, session, challenge, address };
  }

  /**
   * Starts a sign-in at the issuer, or completes it at once by the proxy's header. If another tab has signed the session
   * in meanwhile, the browser returns with its new cookie.
   */
  async function signIn({ session, challenge, address }: Visit, request: Request): Promise<Response> {
    const returnTo = `/approve/${challenge.id}`;
    if (sso.kind === "header") {
      const identity = await sso.identify(request);
      const id = await signInSession(deps, { session, identity, address });
      if (id) await nameUser(deps, identity);
      return redirect(returnTo, id ? { "set-cookie": sessionCookie(config, id) } : {});
    }
    const retryAfter = attempts.take(challenge.id);
    if (retryAfter > 0) throw new TooManyRequests(retryAfter);
    const again = new URL(request.url).searchParams.get("prompt") === "login";
    const url = await sso.begin({ session, returnTo, userHint: challenge.userName, again });
    return redirect(url?.href ?? returnTo);
  }

  /** Behind a proxy the header identifies each request: another user's session does not count. */
  async function stillTheSame(request: Request, session: SignedInSession): Promise<boolean> {
    if (sso.kind === "redirect") return true;
    const { user, groups } = await sso.identify(request);
    return (
      user === session.userName && new Set(groups).symmetricDifference(new Set(session.groups)).size === 0
    );
  }

  /** The form is read last, so that a stranger's is never read. */
  async function checkedForm(id: string, name: string, request: Request, address: string) {
    requireOwnOrigin(config, request);
    const visited = await visit(id, request, address);
    if (!visited) throw new NotFound("There is no such sign-in request for this browser");
    const { session } = visited;
    const form = await readForm(request);
    await requireConnection(request);
    if (!isCsrfToken(form.get("csrf") ?? "", visited.sessionId, name)) {
      throw new Forbidden("This form is not from this browser: reload the page and try again");
    }
    if (!isSignedIn(session) || !(await stillTheSame(request, session))) {
      throw new Forbidden("You are no longer signed in in this browser: reload the page");
    }
    return { ...visited, session, form };
  }

  return new Elysia({ name: "challenge pages" })
    .get("/challenge:validator/:challengeToken", async ({ params, path, request, server }) => {
      // The router takes the colon, which some clients send, for a parameter.
      if (!/^\/challenge(_|:|%3a)validator\//i.test(path))
        throw new NotFound("There is nothing at this address");
      // A link preview must not bind the challenge.
      if (request.method !== "GET" || isLookAhead(request)) return unknownPage();
      const address = addressOf(deps, request, server);
      const sessionId = readCookie(request, sessionCookieName(config));
      const opened = await openChallenge(deps, { token: params.challengeToken, sessionId, address });
      if (!opened) return unknownPage();
      const cookie = opened.newSessionId
        ? { "set-cookie": sessionCookie(config, opened.newSessionId) }
        : undefined;
      return redirect(`/approve/${opened.challenge.id}`, cookie);
    })
    .get(
      "/approve/:id",
      async ({ params, request, server }) => {
        const visited = await inTime(visit(params.id, request, addressOf(deps, request, server)));
        if (!visited || request.method !== "GET") return unknownPage();
        const { session, challenge, sessionId } = visited;
        const now = clock.now();
        if (stateOf(challenge, now) !== "pending") return endPage(challenge, now);
        if (!isSignedIn(session) || !(await stillTheSame(request, session))) return signIn(visited, request);
        const facts = { challenge, sessionId, signedInAs: session.userName, now };
        return session.userName === challenge.userName ? approvePage(facts) : otherUserPage(facts);
      },
      { params: uuid },
    )
    .post(
      "/approve/:id",
      async ({ params, request, server }) => {
        // A script of a page, which has the same origin, must not approve a terminal.
        requireClick(request);
        const address = addressOf(deps, request, server);
        const { session, challenge, form } = await checkedForm(params.id, params.id, request, address);
        const decision = form.get("decision");
        if (decision !== "approve" && decision !== "deny")
          throw new InvalidInput("decision", "The field decision must be approve or deny");
        try {
          await decideChallenge(deps, { id: challenge.id, decision, session, address });
        } catch (error) {
          // Already decided or expired: the page shows the result.
          if (!(error instanceof Conflict)) throw error;
          const now = await findOpened(deps, { id: challenge.id, session, address });
          return now ? endPage(now, clock.now(), 409) : unknownPage();
        }
        return redirect(`/approve/${challenge.id}`);
      },
      { ...takesForm, params: uuid },
    )
    .post(
      "/approve/:id/switch",
      async ({ params, request, server }) => {
        const address = addressOf(deps, request, server);
        const name = `switch ${params.id}`;
        const { session, challenge } = await checkedForm(params.id, name, request, address);
        await signOutSession(deps, { session, address });
        // A page instead of a redirect: browsers apply `form-action` to every redirect after a form, including the
        // issuer's.
        return signInAgainPage(challenge);
      },
      { ...takesForm, params: uuid },
    );
}
