import type { Server } from "bun";
import { isRefreshDue, refreshSignIn } from "../core/auth/session/refresh.ts";
import {
  createSession,
  csrfToken,
  findSession,
  isCsrfToken,
  isSignedIn,
  type SignedInSession,
  signInSession,
} from "../core/auth/session/session.ts";
import { nameUser } from "../core/catalog/person/of_actor.ts";
import type { Actor, Identity } from "../core/context.ts";
import { addressScope } from "../platform/address.ts";
import { TooManyRequests, Unauthenticated } from "../platform/errors.ts";
import { RateLimit } from "../platform/rate_limit.ts";
import { newSecret, toHex } from "../platform/secret.ts";
import { isTimeZone } from "../platform/time_zone.ts";
import { readCookie, sessionCookie, sessionCookieName } from "../server/auth/cookie.ts";
import { addressOf, type Deps } from "../server/deps.ts";
import { redirect } from "../server/page/page.ts";
import type { ReaderFacts } from "./parts/reader.ts";

/** All forms of the pages: their tokens differ from those of the approve page. */
const form = "app";
const saltLength = 16;

/** Differs each time: the size of a compressed page could tell how much of a guess is right (BREACH). */
function maskedToken(sessionId: string): string {
  const salt = newSecret().slice(0, saltLength);
  return salt + csrfToken(sessionId, `${form} ${salt}`);
}

/** Somebody who is signed in in their browser. */
export interface Visitor extends Pick<ReaderFacts, "timeZone" | "isZoneDefault"> {
  actor: Actor;
  session: SignedInSession;
  /** For the forms. */
  csrf: string;
  isOwn(csrf: string): boolean;
}

/** Who uses the pages: the user of the browser's session. No token reaches the browser. */
export class Visitors {
  /** Each sign-in costs a row and a visit at the issuer. */
  readonly #attempts: RateLimit;

  constructor(private readonly deps: Deps) {
    const { rateGenerate } = deps.config;
    this.#attempts = new RateLimit(deps.clock, rateGenerate, rateGenerate);
  }

  /**
   * Undefined when nobody is signed in, or their sign-in has ended at the issuer.
   * @param again whether the request was found before: what a proxy said of it then still counts, even if it has expired since
   */
  async find(request: Request, again = false): Promise<Visitor | undefined> {
    const { deps } = this;
    const { config, sso } = deps;
    const id = readCookie(request, sessionCookieName(config));
    const session = id && (await findSession(deps, id));
    if (!session || !isSignedIn(session)) return undefined;
    // Behind a proxy the header identifies each request: another user's session does not count.
    if (sso.kind === "header" && !again && !isSame(session, await sso.identify(request))) return undefined;
    const { userName: user, groups, expiresAt } = session;
    const sessionKey = toHex(session.idHash);
    const admin = groups.includes(config.adminGroup);
    const actor: Actor = { kind: "user", user, groups, admin, sessionKey, expiresAt };
    try {
      return {
        actor:
          sso.kind === "redirect" && isRefreshDue(deps, session)
            ? await refreshSignIn(deps, actor, sso.refresh)
            : actor,
        session,
        ...zoneOf(session),
        csrf: maskedToken(id),
        isOwn: (csrf) => isCsrfToken(csrf.slice(saltLength), id, `${form} ${csrf.slice(0, saltLength)}`),
      };
    } catch (error) {
      if (error instanceof Unauthenticated) return undefined;
      throw error;
    }
  }

  /**
   * Starts a sign-in at the issuer, or completes it at once by the proxy's header.
   * @param returnTo from `returnPath`
   */
  async signIn(request: Request, server: Server<unknown> | null, returnTo: string): Promise<Response> {
    const { deps } = this;
    const { config, sso } = deps;
    const address = addressOf(deps, request, server);
    const retryAfter = this.#attempts.take(addressScope(address));
    if (retryAfter > 0) throw new TooManyRequests(retryAfter);
    const known = readCookie(request, sessionCookieName(config));
    const found = known && (await findSession(deps, known));
    const { session, id: newId } = found ? { session: found, id: undefined } : await createSession(deps);
    if (sso.kind === "header") {
      const identity = await sso.identify(request);
      const id = await signInSession(deps, { session, identity, address });
      if (id) await nameUser(deps, identity);
      return redirect(returnTo, id ? { "set-cookie": sessionCookie(config, id) } : {});
    }
    const url = await sso.begin({ session, returnTo, again: false });
    return redirect(url?.href ?? returnTo, newId ? { "set-cookie": sessionCookie(config, newId) } : {});
  }
}

/** The stored zone may be one that this version of the time zone database does not know. */
function zoneOf({ timeZone }: SignedInSession) {
  return timeZone && isTimeZone(timeZone)
    ? { timeZone, isZoneDefault: false }
    : { timeZone: "UTC", isZoneDefault: true };
}

function isSame(session: SignedInSession, { user, groups }: Identity): boolean {
  const differing = new Set(groups).symmetricDifference(new Set(session.groups));
  return user === session.userName && differing.size === 0;
}
