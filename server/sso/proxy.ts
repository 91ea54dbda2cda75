import { createRemoteJWKSet, customFetch, errors, jwtVerify } from "jose";
import type { Context } from "../../core/context.ts";
import { ConfigurationError, Unauthenticated, Unavailable } from "../../platform/errors.ts";
import { RateLimit } from "../../platform/rate_limit.ts";
import { identityOf } from "./claims.ts";
import { requireSecure } from "./secure.ts";
import type { HeaderSignOn } from "./sso.ts";

/** All signatures with a public key, as from an issuer (RFC 7518, RFC 8037, RFC 9864). */
const signatures = ["RS", "PS", "ES"]
  .flatMap((family) => ["256", "384", "512"].map((bits) => family + bits))
  .concat("EdDSA", "Ed25519");

/** Limits the requests for keys that invalid assertions cause, which anybody can send. */
const reloadsPerMinute = 12;

/**
 * Single sign-on by an identity-aware proxy (SVC_SSO=proxy), which adds a signed assertion (a JWT) in a header of each
 * request. The signature is verified, so the header need not be stripped from other clients' requests.
 *
 * @throws ConfigurationError naming every missing variable
 */
export function proxySignOn(
  context: Pick<Context, "config" | "clock" | "log">,
  fetch: typeof globalThis.fetch,
): HeaderSignOn {
  const { config, clock } = context;
  const reloads = new RateLimit(clock, reloadsPerMinute, reloadsPerMinute);
  const { proxyHeader, proxyJwksUrl, proxyIssuer, proxyAudience } = config;
  const missing = Object.entries({
    SVC_PROXY_JWKS_URL: proxyJwksUrl,
    SVC_PROXY_ISSUER: proxyIssuer,
    SVC_PROXY_AUDIENCE: proxyAudience,
  }).flatMap(([name, value]) => (value ? [] : [`${name}: needed with SVC_SSO=proxy`]));
  if (missing.length > 0) throw new ConfigurationError(missing);
  requireSecure("SVC_PROXY_JWKS_URL", new URL(proxyJwksUrl!));
  const keys = createRemoteJWKSet(new URL(proxyJwksUrl!), { [customFetch]: fetch });
  return {
    kind: "header",
    async identify(request) {
      const assertion = request.headers.get(proxyHeader);
      if (!assertion) throw new Unauthenticated("The proxy in front of this server did not identify you");
      const verify = () =>
        jwtVerify(assertion, keys, {
          algorithms: signatures,
          issuer: proxyIssuer!,
          audience: proxyAudience!,
          requiredClaims: ["exp", "iat"],
          clockTolerance: 30,
          currentDate: clock.now(),
        });
      const { payload } = await verify()
        .catch(async (error: unknown) => {
          // The proxy may have replaced its keys.
          if (!needsOtherKeys(error) || reloads.take("keys") > 0) throw error;
          await keys.reload();
          return verify();
        })
        .catch((cause: unknown) => {
          if (isAboutKeys(cause)) throw new Unavailable("The proxy's keys cannot be fetched", { cause });
          throw new Unauthenticated("The proxy's header that identifies you is not valid", { cause });
        });
      return identityOf(context, payload);
    },
  };
}

/** jose reads the keys again only for an unknown `kid`, and only half a minute after the last time. */
function needsOtherKeys(error: unknown): boolean {
  return error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWSSignatureVerificationFailed;
}

/** Whether the key set, rather than the assertion, failed: jose has no error class for that. */
function isAboutKeys(cause: unknown): boolean {
  if (!(cause instanceof errors.JOSEError)) return true;
  return ["ERR_JOSE_GENERIC", errors.JWKSTimeout.code, errors.JWKSInvalid.code].includes(cause.code);
}
