import type { Context } from "../../core/context.ts";
import { ConfigurationError, Unauthenticated, Unavailable } from "../../platform/errors.ts";
import { identityOf } from "./claims.ts";
import { KeysUnavailable, RemoteKeys } from "./remote_keys.ts";
import { requireSecure } from "./secure.ts";
import type { HeaderSignOn } from "./sso.ts";

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
  const { proxyHeader, proxyJwksUrl, proxyIssuer, proxyAudience } = config;
  const missing = Object.entries({
    SVC_PROXY_JWKS_URL: proxyJwksUrl,
    SVC_PROXY_ISSUER: proxyIssuer,
    SVC_PROXY_AUDIENCE: proxyAudience,
  }).flatMap(([name, value]) => (value ? [] : [`${name}: needed with SVC_SSO=proxy`]));
  if (missing.length > 0) throw new ConfigurationError(missing);
  requireSecure("SVC_PROXY_JWKS_URL", new URL(proxyJwksUrl!));
  const keys = new RemoteKeys(proxyJwksUrl!, fetch, clock);
  return {
    kind: "header",
    async identify(request) {
      const assertion = request.headers.get(proxyHeader);
      if (!assertion) throw new Unauthenticated("The proxy in front of this server did not identify you");
      const required = { issuer: proxyIssuer!, audience: proxyAudience!, requiredClaims: ["exp", "iat"] };
      const payload = await keys.verify(assertion, required).catch((cause: unknown) => {
        if (cause instanceof KeysUnavailable)
          throw new Unavailable("The proxy's keys cannot be fetched", { cause });
        throw new Unauthenticated("The proxy's header that identifies you is not valid", { cause });
      });
      return identityOf(context, payload);
    },
  };
}
