import { SignJWT, UnsecuredJWT } from "jose";
import { issuerKey } from "./issuer_keys.ts";

/** How the issuer misbehaves at its token endpoint. `down` affects all endpoints. */
export type Misbehaviour =
  | "wrong nonce"
  | "no nonce"
  | "wrong audience"
  | "wrong issuer"
  | "unknown key"
  | "alg none"
  | "expired"
  | "other subject at userinfo"
  | "userinfo refused"
  | "userinfo down"
  | "token endpoint error"
  | "refresh of another subject"
  | "token endpoint down"
  | "not json"
  | "no ID token"
  | "down";

/**
 * An OpenID Connect issuer that can misbehave. It signs everyone in immediately as `user`; an unexpected call fails
 * loudly.
 */
export async function startTestIssuer() {
  const attempts = new Map<string, { nonce: string; challenge: string; redirect: string }>();
  const issuer = {
    user: "alice@example.com",
    claims: { email_verified: true, groups: ["admin", "oncall"] } as Record<string, unknown>,
    misbehaviour: undefined as Misbehaviour | undefined,
    /** Answers at the authorization endpoint with this error instead of a code. */
    error: undefined as string | undefined,
    /** Claims that only the userinfo response contains. */
    userinfo: undefined as Record<string, unknown> | undefined,
    /** Replaces members of its metadata. */
    metadata: {} as Record<string, unknown>,
    /** Whether it gives refresh tokens, and what else its answer at the token endpoint says. */
    refresh: undefined as Record<string, unknown> | undefined,
    /** The refresh tokens that it accepts. Each works once. */
    refreshTokens: new Set<string>(),
    /** How many refresh tokens it has accepted. */
    refreshes: 0,
    /** It answers to them only after this. */
    held: Promise.resolve(),
    /** The key that it signs with, and publishes. */
    key: "own" as "own" | "stranger",
    /** The number of requests for its metadata. */
    discoveries: 0,
    authorizations: [] as URLSearchParams[],
    url: "",
    stop: () => server.stop(true),
  };

  function tokens(idToken?: string) {
    const refreshToken = crypto.randomUUID();
    if (issuer.refresh) issuer.refreshTokens.add(refreshToken);
    return Response.json({
      access_token: crypto.randomUUID(),
      token_type: "Bearer",
      ...(idToken ? { id_token: idToken } : {}),
      ...(issuer.refresh ? { refresh_token: refreshToken, ...issuer.refresh } : {}),
    });
  }

  async function idToken(nonce?: string): Promise<string> {
    const wrong = (name: Misbehaviour) => issuer.misbehaviour === name;
    const now = Math.floor(Date.now() / 1000);
    const claims = {
      ...(issuer.userinfo ? {} : { email: issuer.user, ...issuer.claims }),
      ...(wrong("no nonce") ? {} : { nonce: wrong("wrong nonce") ? "another" : nonce }),
      iss: wrong("wrong issuer") ? "https://issuer.invalid" : issuer.url,
      aud: wrong("wrong audience") ? "another-client" : "svc",
      sub: wrong("refresh of another subject") && nonce === undefined ? "somebody" : `sub-${issuer.user}`,
      iat: wrong("expired") ? now - 7200 : now,
      exp: wrong("expired") ? now - 3600 : now + 300,
    };
    if (wrong("alg none")) return new UnsecuredJWT(claims).encode();
    const kid = wrong("unknown key") ? "stranger" : issuer.key;
    const { privateKey } = await issuerKey(kid);
    return new SignJWT(claims).setProtectedHeader({ alg: "RS256", kid }).sign(privateKey);
  }

  const server: Bun.Server<undefined> = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request: Request): Promise<Response> {
      if (issuer.misbehaviour === "down") return new Response(null, { status: 503 });
      const url = new URL(request.url);
      const base = `http://127.0.0.1:${server.port}`;
      switch (url.pathname) {
        case "/.well-known/openid-configuration":
          issuer.discoveries += 1;
          return Response.json({
            issuer: base,
            authorization_endpoint: `${base}/authorize`,
            token_endpoint: `${base}/token`,
            jwks_uri: `${base}/jwks`,
            userinfo_endpoint: `${base}/userinfo`,
            response_types_supported: ["code"],
            subject_types_supported: ["public"],
            id_token_signing_alg_values_supported: ["RS256"],
            ...issuer.metadata,
          });
        case "/jwks":
          return Response.json({
            keys: [{ ...(await issuerKey(issuer.key)).publicJwk, kid: issuer.key, alg: "RS256", use: "sig" }],
          });
        case "/authorize": {
          const query = url.searchParams;
          issuer.authorizations.push(query);
          const back = new URL(query.get("redirect_uri") ?? "");
          back.searchParams.set("state", query.get("state") ?? "");
          if (issuer.error) back.searchParams.set("error", issuer.error);
          else {
            const code = crypto.randomUUID();
            attempts.set(code, {
              nonce: query.get("nonce") ?? "",
              challenge: query.get("code_challenge") ?? "",
              redirect: query.get("redirect_uri") ?? "",
            });
            back.searchParams.set("code", code);
          }
          return new Response(null, { status: 303, headers: { location: back.href } });
        }
        case "/token": {
          const form = new URLSearchParams(await request.text());
          if (form.get("grant_type") === "refresh_token" && issuer.misbehaviour !== "token endpoint down") {
            if (!issuer.refreshTokens.delete(form.get("refresh_token") ?? ""))
              return Response.json({ error: "invalid_grant" }, { status: 400 });
            issuer.refreshes += 1;
            await issuer.held;
            return tokens(await idToken());
          }
          const attempt = attempts.get(form.get("code") ?? "");
          attempts.delete(form.get("code") ?? "");
          if (issuer.misbehaviour === "token endpoint down")
            return new Response("<html>", { status: 502, headers: { "content-type": "text/html" } });
          const hash = new Bun.CryptoHasher("sha256")
            .update(form.get("code_verifier") ?? "")
            .digest("base64url");
          const good = attempt?.challenge === hash && attempt.redirect === form.get("redirect_uri");
          if (!good || issuer.misbehaviour === "token endpoint error") {
            return Response.json(
              { error: "invalid_grant", error_description: "secret detail" },
              { status: 400 },
            );
          }
          if (issuer.misbehaviour === "not json")
            return new Response("<html>", { headers: { "content-type": "text/html" } });
          return tokens(issuer.misbehaviour === "no ID token" ? undefined : await idToken(attempt.nonce));
        }
        case "/userinfo": {
          if (issuer.misbehaviour === "userinfo refused") return new Response(null, { status: 403 });
          if (issuer.misbehaviour === "userinfo down") return new Response(null, { status: 500 });
          const sub = issuer.misbehaviour === "other subject at userinfo" ? "somebody" : `sub-${issuer.user}`;
          return Response.json({ sub, ...issuer.userinfo });
        }
        default:
          throw new Error(`the issuer was asked for ${url.pathname}`);
      }
    },
  });
  issuer.url = `http://127.0.0.1:${server.port}`;
  return issuer;
}

export type TestIssuer = Awaited<ReturnType<typeof startTestIssuer>>;
