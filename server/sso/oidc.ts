import { and, eq, gt } from "drizzle-orm";
import * as client from "openid-client";
import { isSessionGone } from "../../core/auth/session/session.ts";
import type { Context } from "../../core/context.ts";
import { signIn } from "../../drizzle/schema/index.ts";
import { after } from "../../platform/clock.ts";
import { ConfigurationError, SvcError, Unauthenticated, Unavailable } from "../../platform/errors.ts";
import { RateLimit } from "../../platform/rate_limit.ts";
import { isRecord } from "../../platform/record.ts";
import { newSecret, sha256 } from "../../platform/secret.ts";
import { claimAt, identityOf } from "./claims.ts";
import { verifyLogoutToken } from "./logout_token.ts";
import { KeysUnavailable, RemoteKeys } from "./remote_keys.ts";
import { requireSecure } from "./secure.ts";
import type { RedirectSignOn } from "./sso.ts";

/** Where the issuer redirects the browser to; register it there as `<public url>/sign_in/callback`. */
export const callbackPath = "/sign_in/callback";

/** Long enough for a password, a second factor and a telephone call. */
const attemptSeconds = 600;
const clockToleranceSeconds = 30;
const issuerTimeoutSeconds = 10;

/**
 * Single sign-on with any OpenID Connect issuer: authorization code with PKCE, state and nonce, all stored here and
 * bound to the browser session. `state` is the id of our row, never a URL, so nobody can choose where it leads.
 */
export function oidcSignOn(context: Context, fetch: typeof globalThis.fetch): RedirectSignOn {
  const { db, clock, config } = context;
  const issuer = config.oidcIssuer;
  if (!issuer)
    throw new ConfigurationError(["SVC_OIDC_ISSUER: needed with SVC_SSO=oidc (or set SVC_SSO=proxy)"]);
  const metadata = discoverer(context, new URL(issuer), fetch);
  const redirectUri = config.publicUrl + callbackPath;
  let keys: { url: string; at: RemoteKeys } | undefined;
  const stateOf = (url: URL) => url.searchParams.get("state") ?? "";
  const isAttemptOf = (url: URL) =>
    and(eq(signIn.stateHash, sha256(stateOf(url))), gt(signIn.expiresAt, clock.now()));

  /** The claims of the ID token, and those of the userinfo endpoint if a claim is missing that we need. */
  const claimsOf = async (
    provider: client.Configuration,
    tokens: client.TokenEndpointResponse & client.TokenEndpointResponseHelpers,
    subject: string,
  ): Promise<Record<string, unknown>> => {
    const claims = tokens.claims() ?? {};
    const needed = [config.oidcUserClaim, config.oidcGroupsClaim];
    const enough = needed.every((name) => claimAt(claims, name) !== undefined);
    if (enough || !provider.serverMetadata().userinfo_endpoint) return claims;
    return { ...(await client.fetchUserInfo(provider, tokens.access_token, subject)), ...claims };
  };

  return {
    kind: "redirect",

    async begin({ session, returnTo, userHint, again }) {
      const found = await metadata.current();
      const now = clock.now();
      const state = newSecret();
      const nonce = newSecret();
      const pkceVerifier = client.randomPKCECodeVerifier();
      const attempt = {
        stateHash: sha256(state),
        sessionHash: session.idHash,
        nonce,
        pkceVerifier,
        returnTo,
        createdAt: now,
        expiresAt: after(now, attemptSeconds),
      };
      try {
        await db.insert(signIn).values(attempt);
      } catch (error) {
        if (isSessionGone(error)) return undefined;
        throw error;
      }
      const parameters = {
        redirect_uri: redirectUri,
        scope: config.oidcScope,
        state,
        nonce,
        code_challenge: await client.calculatePKCECodeChallenge(pkceVerifier),
        code_challenge_method: "S256",
        ...(userHint === undefined ? {} : { login_hint: userHint }),
        ...(again ? { prompt: "login" } : {}),
      };
      try {
        return await metadata.orNewer(found, async ({ provider }) =>
          client.buildAuthorizationUrl(provider, parameters),
        );
      } catch (cause) {
        throw invalidMetadata(cause);
      }
    },

    async finish({ session, url }) {
      const [attempt] = await db
        .delete(signIn)
        .where(and(isAttemptOf(url), eq(signIn.sessionHash, session.idHash)))
        .returning();
      if (!attempt) return undefined;
      const found = await metadata.current();
      const answer = new URL(redirectUri);
      answer.search = url.search;
      const checks = {
        pkceCodeVerifier: attempt.pkceVerifier,
        expectedState: stateOf(url),
        expectedNonce: attempt.nonce,
        idTokenExpected: true,
      };
      const exchange = exchangeOnce(fetch as client.CustomFetch);
      try {
        const signedIn = await metadata.orNewer(found, async ({ provider }) => {
          provider[client.customFetch] = exchange;
          const tokens = await client.authorizationCodeGrant(provider, answer, checks);
          const { iss, sub, sid } = tokens.claims()!;
          return {
            identity: identityOf(context, await claimsOf(provider, tokens, sub)),
            issuerSignIn: {
              issuer: iss,
              subject: sub,
              sid: typeof sid === "string" ? sid : undefined,
              refreshToken: outlivesSession(tokens) ? tokens.refresh_token : undefined,
            },
          };
        });
        return { ...signedIn, returnTo: attempt.returnTo };
      } catch (error) {
        throw signInError(error);
      }
    },

    async startOf(url) {
      const [attempt] = await db.select().from(signIn).where(isAttemptOf(url));
      return attempt?.returnTo;
    },

    async refresh({ refreshToken, subject, replaced }) {
      const found = await metadata.current();
      const exchange = exchangeOnce(fetch as client.CustomFetch, replaced);
      try {
        return await metadata.orNewer(found, async ({ provider }) => {
          provider[client.customFetch] = exchange;
          const tokens = await client.refreshTokenGrant(provider, refreshToken);
          const named = tokens.claims()?.sub ?? subject;
          if (named !== subject) throw new Unauthenticated("The sign-in provider answered for another user");
          const claims = await claimsOf(provider, tokens, subject);
          return Object.keys(claims).length > 0 ? identityOf(context, claims) : undefined;
        });
      } catch (error) {
        const isRefused =
          (error instanceof client.ResponseBodyError && error.error === "invalid_grant") ||
          error instanceof Unauthenticated;
        if (isRefused) throw new Unauthenticated(ended, { cause: explained(error) });
        throw isOutage(error)
          ? unreachable(error)
          : new Unavailable(notRefreshed, { cause: explained(error) });
      }
    },

    async verifyLogout(token) {
      const { provider } = await metadata.current();
      const { issuer: name, jwks_uri: url } = provider.serverMetadata();
      if (!url) throw invalidMetadata(new Error("no jwks_uri"));
      if (keys?.url !== url) keys = { url, at: new RemoteKeys(url, fetch, clock) };
      const expected = { issuer: name, clientId: config.oidcClientId, now: clock.now() };
      return verifyLogoutToken(token, expected, keys.at).catch((cause: unknown) => {
        throw cause instanceof KeysUnavailable ? unreachable(cause) : cause;
      });
    },
  };
}

const ended = "The sign-in provider has ended your sign-in: svc login";
const notRefreshed = "The sign-in provider does not say whether your sign-in still stands: try again later";

/**
 * Whether a refresh token is of use hours after the sign-in. Those of Keycloak without the scope `offline_access`, which
 * announce their end, expire with the session there: that they are refused says nothing about the user.
 */
const outlivesSession = ({ refresh_expires_in: seconds }: client.TokenEndpointResponse) =>
  typeof seconds !== "number" || seconds === 0;

/**
 * A fetch that sends a code or a refresh token once: an answer with tokens is kept, and given again for the next exchange. A code works only
 * once, and the first answer may have been read with metadata that were out of date.
 *
 * @param replaced receives the refresh token of an answer, before anything else in it can turn out to be invalid
 */
function exchangeOnce(
  fetch: client.CustomFetch,
  replaced?: (refreshToken: string) => Promise<void>,
): client.CustomFetch {
  let kept: Response | undefined;
  return async (url, options) => {
    // The userinfo endpoint and the keys are read by GET.
    if (options.method !== "POST") return fetch(url, options);
    if (kept) return kept.clone();
    const response = await fetch(url, options);
    if (!response.ok) return response;
    kept = response.clone();
    const answer: unknown =
      replaced &&
      (await response
        .clone()
        .json()
        .catch(() => undefined));
    if (isRecord(answer) && typeof answer.refresh_token === "string") await replaced?.(answer.refresh_token);
    return response;
  };
}

interface Metadata {
  /** Reads the issuer's keys when it first needs them, because an issuer may replace them at any time. */
  provider: client.Configuration;
  document: string;
}

interface Discoverer {
  /** The issuer's metadata, at most a minute old; older only while the issuer does not answer. */
  current(): Promise<Metadata>;
  /**
   * Runs `work` and, if it fails for a reason that old metadata may explain, reads them again. If they have changed, it
   * runs `work` once more, with the new ones.
   */
  orNewer<T>(found: Metadata, work: (metadata: Metadata) => Promise<T>): Promise<T>;
}

const freshMilliseconds = 60_000;
/** After a failure to read the metadata again. */
const retryMilliseconds = 5000;
/** Limits the requests that failed sign-ins cause, which anybody can provoke. */
const rereadsPerMinute = 12;

/** Fetches the issuer's metadata when first needed, so that the server starts, and keeps running, without it. */
function discoverer(context: Context, issuer: URL, fetch: typeof globalThis.fetch): Discoverer {
  const { clock, config, log } = context;
  const rereads = new RateLimit(clock, rereadsPerMinute, rereadsPerMinute);
  let known: { document: string; at: number; goodFor: number } | undefined;
  let looking: Promise<string> | undefined;
  requireSecure("SVC_OIDC_ISSUER", issuer);
  /** `readDocument` answers the first request, which is for the metadata. */
  const discover = (readDocument: client.CustomFetch) => {
    let next = readDocument;
    const metadata = { [client.clockTolerance]: clockToleranceSeconds };
    const authentication = clientAuthentication(config.oidcClientSecret);
    return client.discovery(issuer, config.oidcClientId, metadata, authentication, {
      timeout: issuerTimeoutSeconds,
      [client.customFetch]: (url, options) => {
        const read = next;
        next = fetch as client.CustomFetch;
        return read(url, options);
      },
      execute: [
        // Verify the ID token's signature even where TLS alone would suffice.
        client.enableNonRepudiationChecks,
        ...(issuer.protocol === "http:" ? [client.allowInsecureRequests] : []),
      ],
    });
  };
  const look = async () => {
    const at = clock.now().getTime();
    try {
      let answer: Response | undefined;
      const found = await discover(async (url, options) => {
        const response = await (fetch as client.CustomFetch)(url, options);
        answer = response.clone();
        return response;
      });
      // Anyone can create a tenant, with a user who has any e-mail address.
      if (found.serverMetadata().issuer.includes("{tenantid}"))
        throw new Error("SVC_OIDC_ISSUER admits every tenant of Entra ID: it must name one");
      for (const needed of ["authorization_endpoint", "token_endpoint", "jwks_uri"] as const)
        if (!found.serverMetadata()[needed]) throw new Error(`no ${needed}`);
      known = { document: await answer!.text(), at, goodFor: freshMilliseconds };
    } catch (cause) {
      if (!known) throw isOutage(cause) ? unreachable(cause) : invalidMetadata(cause);
      log.warn(
        { err: explained(cause) },
        "the sign-in provider's metadata cannot be read again; the last one is used",
      );
      known = { ...known, at, goodFor: retryMilliseconds };
    }
    return known.document;
  };
  const read = () => {
    looking ??= look().finally(() => {
      looking = undefined;
    });
    return looking;
  };
  const isFresh = () => known && Math.abs(clock.now().getTime() - known.at) < known.goodFor;
  const parse = async (document: string): Promise<Metadata> => {
    const headers = { "content-type": "application/json" };
    return { document, provider: await discover(async () => new Response(document, { headers })) };
  };
  return {
    current: async () => parse(isFresh() ? known!.document : await read()),
    async orNewer(found, work) {
      try {
        return await work(found);
      } catch (error) {
        if (isAboutClaims(error)) throw error;
        // Another sign-in may have read them meanwhile.
        const hasNewer = known!.document !== found.document;
        if (!hasNewer && rereads.take("metadata") > 0) throw error;
        const document = hasNewer ? known!.document : await read();
        if (document === found.document) throw error;
        return work(await parse(document));
      }
    },
  };
}

/** Whether an answer was understood, and refused for what it says: other metadata would not change that. */
function isAboutClaims(error: unknown): boolean {
  if (error instanceof client.AuthorizationResponseError) return true;
  const { code } = error as { code?: unknown };
  return code === "OAUTH_JWT_CLAIM_COMPARISON_FAILED" || code === "OAUTH_JWT_TIMESTAMP_CHECK_FAILED";
}

/** Uses the authentication method that the issuer lists; without a list it is Basic (OpenID Connect Discovery 3). */
function clientAuthentication(secret: string | undefined): client.ClientAuth {
  if (!secret) return client.None();
  const basic = client.ClientSecretBasic(secret);
  const post = client.ClientSecretPost(secret);
  return (issuer, ...rest) => {
    const methods = issuer.token_endpoint_auth_methods_supported;
    const usePost =
      methods && !methods.includes("client_secret_basic") && methods.includes("client_secret_post");
    return (usePost ? post : basic)(issuer, ...rest);
  };
}

/** Maps an error to one of our own messages for the page. The issuer's message is only logged. */
function signInError(error: unknown): SvcError {
  if (error instanceof SvcError) return error;
  const options = { cause: explained(error) };
  if (error instanceof client.AuthorizationResponseError) {
    return error.error === "access_denied"
      ? new Unauthenticated(
          "You were not signed in: the sign-in provider says that access was denied",
          options,
        )
      : new Unauthenticated("You were not signed in: the sign-in provider reports a problem", options);
  }
  if (isOutage(error)) return unreachable(error);
  return new Unauthenticated("You were not signed in: the sign-in provider's answer is not valid", options);
}

/** Whether the issuer, or a proxy in front of it, cannot be reached, breaks off, or says that it is down or overloaded. */
function isOutage(error: unknown): boolean {
  const { code, cause } = error as { code?: string; cause?: unknown };
  if (error instanceof TypeError || code === "OAUTH_TIMEOUT") return true;
  if (cause instanceof Response) return cause.status >= 500 || cause.status === 429;
  return isCutOff(cause);
}

/** Whether a connection ended, or the time limit, after the headers of an answer: the library cannot parse the body then. */
function isCutOff(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { name, code, cause } = error as { name: string; code?: unknown; cause?: unknown };
  return code === "ECONNRESET" || name === "TimeoutError" || isCutOff(cause);
}

const unreachable = (cause: unknown) =>
  new Unavailable("The sign-in provider does not answer: try again in a moment", { cause: explained(cause) });

const invalidMetadata = (cause: unknown) =>
  new Unavailable("The sign-in provider's metadata is not valid", { cause: explained(cause) });

const longestExplanation = 300;

/** Adds the issuer's answer, which the library's messages leave out, for the log. Anyone may have sent it: it is cut. */
function explained(error: unknown): unknown {
  const answer = answerIn(error);
  return answer ? new Error(answer.slice(0, longestExplanation), { cause: error }) : error;
}

function answerIn(error: unknown): string | undefined {
  if (error instanceof client.AuthorizationResponseError || error instanceof client.ResponseBodyError)
    return `${error.error}: ${error.error_description ?? "no description"}`;
  const response =
    error instanceof client.WWWAuthenticateChallengeError
      ? error.response
      : (error as { cause?: unknown }).cause;
  return response instanceof Response ? `HTTP ${response.status} from ${response.url}` : undefined;
}
