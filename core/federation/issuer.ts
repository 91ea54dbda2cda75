import type { Config } from "../config.ts";

// Federation: other services trust us as an OpenID provider. We issue tokens about our users, each for one audience
// (token.ts). A service that trusts the issuer discovers our public keys, and never queries us about a user.

/** The `iss` of federation tokens, where discovery starts. It need not be an address of this server. */
export function federationIssuer({ federationIssuer, publicUrl }: Config): string {
  return (federationIssuer ?? publicUrl).replace(/\/+$/, "");
}

/** OpenID Connect Discovery 1.0, section 3, for an issuer that does not sign anyone in. */
export function discoveryDocument(config: Config, algorithms: readonly string[]) {
  const issuer = federationIssuer(config);
  return {
    issuer,
    jwks_uri: `${issuer}/.well-known/jwks.json`,
    response_types_supported: ["id_token"],
    subject_types_supported: ["public"],
    id_token_signing_alg_values_supported: [...algorithms],
    scopes_supported: ["openid"],
    claims_supported: ["iss", "aud", "sub", "iat", "exp", "jti", "user", "role", "lease", "incident"],
  };
}
