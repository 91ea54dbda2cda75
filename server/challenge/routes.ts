import type { Server } from "bun";
import { Elysia, t } from "elysia";
import { thumbprintOf } from "../../core/auth/certificate/certificate.ts";
import { createChallenge, openedChannel } from "../../core/auth/challenge/create.ts";
import {
  GenerationLimit,
  KnownChallenges,
  OpenChallenges,
  PollLimits,
} from "../../core/auth/challenge/limits.ts";
import { countChallenge } from "../../core/auth/challenge/outcomes.ts";
import { type PollContext, pollChallenge, pollFromMemory } from "../../core/auth/challenge/poll.ts";
import type { PollOutcome } from "../../core/auth/challenge/state.ts";
import { canonicalUserName } from "../../core/auth/user/name.ts";
import { databaseAnswer } from "../../drizzle/database_answer.ts";
import { addressScope } from "../../platform/address.ts";
import { InvalidInput, NotFound, SvcError, TooManyRequests } from "../../platform/errors.ts";
import { tokenCookie } from "../auth/actor.ts";
import { presentedCertificates } from "../auth/certificate.ts";
import { refuseOtherSites, requireOwnHost } from "../auth/origin.ts";
import { addressOf, type Deps } from "../deps.ts";
import { nullable } from "../http/schema.ts";
import { usualHeaders } from "../http/security_headers.ts";
import { denied, expired, generated, pending, refused, success, unknown } from "./model.ts";

export const challengeRoute = "/noauth/v1/:operation/:argument";

/** A held poll ends before the idle timeouts of common proxies (60 s) and of this server. */
const longestWaitSeconds = 30;
const statusOf = { pending: 200, success: 200, denied: 403, unknown: 404, expired: 410 } as const;
/** A prepared Headers object is copied faster than a plain object is read. */
const pollHeaders = new Headers({ ...usualHeaders, "content-type": "application/json" });
const pendingInit = { headers: pollHeaders };

/**
 * The challenge protocol's routes that need no sign-in: generator and poller (docs/protocol.md). Elysia's router takes a colon
 * anywhere in a segment for a parameter, so the whole segment is a parameter and is compared here.
 */
export function challengeRoutes(deps: Deps) {
  const { config, clock, watch, telemetry } = deps;
  const generations = new GenerationLimit(clock, config.rateGenerate);
  const known = new KnownChallenges(clock, config.challengeLifetime);
  deps.listener.subscribe({ channels: { [openedChannel]: (key) => known.add(key) } });
  const generateContext = { ...deps, known, open: new OpenChallenges() };
  const pollContext: PollContext = { ...deps, limits: new PollLimits(clock, config), known };
  const certificates = presentedCertificates(deps);
  const secure = config.publicUrl.startsWith("https://");

  async function generate(userName: string, request: Request, address: string) {
    const retryAfter = generations.take(addressScope(address), nameToCount(userName), clock.now());
    if (retryAfter > 0) {
      countChallenge(telemetry, "refused");
      throw new TooManyRequests(retryAfter);
    }
    const query = new URL(request.url).searchParams;
    const opening = createChallenge(generateContext, {
      userName,
      codeChallenge: query.get("code_challenge") ?? undefined,
      codeChallengeMethod: query.get("code_challenge_method") ?? undefined,
      address,
      client: request.headers.get("user-agent") ?? "",
    });
    const { token, userCode, bound } = await databaseAnswer(opening);
    return {
      challenge_url: `${config.publicUrl}/challenge_validator/${token}`,
      polling_url: `${config.publicUrl}/noauth/v1/challenge_poller/${token}`,
      expires_in: config.challengeLifetime,
      interval: config.challengeInterval,
      ...(bound
        ? { user_code: userCode, binding: "S256" as const, client_certificates: config.mtlsUrl !== undefined }
        : {}),
    };
  }

  /** The name that an attempt is counted under: one for all invalid user names. */
  function nameToCount(userName: string): string {
    try {
      return canonicalUserName(userName, config.domain);
    } catch {
      return "";
    }
  }

  async function poll(token: string, request: Request, server: Server<unknown> | null) {
    const address = addressOf(deps, request, server);
    const wait = waitOf(request);
    if (wait) server?.timeout(request, longestWaitSeconds + 10);
    const seen = { url: request.url, authorization: request.headers.get("authorization") };
    const verifier = verifierOf(seen.authorization);
    const { signal } = request;
    const chain = certificates.chainOf(request, server);
    const certificate = chain && thumbprintOf(chain[0]!);
    return answer(
      await pollChallenge(pollContext, {
        token,
        verifier,
        address,
        certificate,
        seen,
        wait,
        signal,
      }),
    );
  }

  /**
   * Answers a poll from memory, before routing, validation and logging: this is nine in ten requests. Anything unusual
   * takes the normal path and gets the same answer. The answer has the usual headers, except for HSTS.
   */
  function pollAtOnce(request: Request, server: Server<unknown> | null): Response | undefined {
    const { url, headers: sent } = request;
    const facts = watch.recall(url);
    if (!facts || request.method !== "GET" || sent.has("prefer")) return undefined;
    const address = () => addressOf(deps, request, server);
    const outcome = pollFromMemory(pollContext, facts, sent.get("authorization"), address, clock.now());
    return outcome && answer(outcome);
  }

  function answer(outcome: PollOutcome): Response {
    const { status } = outcome;
    if (status === "success") {
      const { jwt, expiresAt, user } = outcome;
      const expiration = Math.floor(expiresAt.getTime() / 1000);
      const token = { status, encoded_jwt: jwt, cookie_name: tokenCookie, expiration, user };
      const attributes = secure ? { secure: true, http_only: true, same_site: 2 } : {};
      return new Response(JSON.stringify({ ...token, ...attributes }), pendingInit);
    }
    if (status !== "pending" || !outcome.retryAfter)
      return new Response(`{"status":"${status}"}`, { ...pendingInit, status: statusOf[status] });
    const headers = new Headers(pollHeaders);
    headers.set("retry-after", String(outcome.retryAfter));
    return new Response(`{"status":"${status}"}`, { status: 429, headers });
  }

  const routes = new Elysia({ name: "challenge" })
    .get(
      challengeRoute,
      ({ params, request, server }) => {
        // Elysia lets HEAD run a GET handler, which would collect the token and discard it.
        if (request.method !== "GET") throw new NotFound("This address supports only GET");
        // Before anything is counted: a user is not responsible for requests that another site triggers.
        requireOwnHost(config, request);
        refuseOtherSites(config, request);
        switch (params.operation) {
          case "challenge_poller":
          case "challenge:poller":
            return poll(params.argument ?? "", request, server);
          case "challenge_generator":
          case "challenge:generator":
            if (params.argument === null)
              throw new InvalidInput("user", "The user name is not valid percent-encoded UTF-8");
            return generate(params.argument, request, addressOf(deps, request, server));
          default:
            throw new NotFound("There is nothing at this address");
        }
      },
      {
        // A segment with invalid percent-encoding arrives as null.
        params: t.Object({ operation: nullable(t.String()), argument: nullable(t.String()) }),
        response: {
          200: t.Union([pending, success, generated]),
          400: refused,
          401: refused,
          403: t.Union([denied, refused]),
          404: t.Union([unknown, refused]),
          410: expired,
          429: t.Union([pending, refused]),
          500: refused,
          503: refused,
        },
      },
    )
    .all("/noauth/*", ({ path }) => {
      if (/^\/noauth\/v1\/challenge[:_]generator\/?$/.test(path))
        throw new InvalidInput("user", "The user name is empty");
      throw new SvcError("not_found", "There is nothing at this address");
    });
  return { routes, pollAtOnce };
}

/** `Authorization: Challenge <verifier>`; a verifier is 43 to 128 unreserved characters (RFC 7636, 4.1). */
function verifierOf(authorization: string | null): string | undefined {
  if (authorization === null || !/^challenge /i.test(authorization)) return undefined;
  const verifier = authorization.slice("challenge ".length).trim();
  return verifier.length >= 43 && verifier.length <= 128 ? verifier : undefined;
}

/** RFC 7240: `Prefer: wait=25`, seconds. */
function waitOf(request: Request): number | undefined {
  const [, seconds] =
    request.headers.get("prefer")?.match(/(?:^|[,;]\s*)wait\s*=\s*"?(\d{1,6})"?\s*(?:$|[,;])/i) ?? [];
  return seconds === undefined ? undefined : Math.min(Number(seconds), longestWaitSeconds);
}
