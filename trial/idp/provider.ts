import { randomBytes } from "node:crypto";
import { exportJWK, generateKeyPair } from "jose";
import type Provider from "oidc-provider";
import type { Configuration, interactionPolicy } from "oidc-provider";
import { errorPage, pageHeaders } from "./pages.ts";
import { findUser, trialUsers } from "./users.ts";

export interface ProviderOptions {
  issuer: string;
  /** The service, the only client; the browser may return only to `<publicUrl>/sign_in/callback`. */
  publicUrl: string;
  clientSecret: string;
}

const scopes = "openid email profile groups";
const minute = 60;

/** Creates an oidc-provider with our users, one client, and a key generated at each start. */
export async function createProvider({
  issuer,
  publicUrl,
  clientSecret,
}: ProviderOptions): Promise<Provider> {
  const { Provider, interactionPolicy } = await quietly(() => import("oidc-provider"));
  const { privateKey } = await generateKeyPair("ES256", { extractable: true });
  const key = {
    ...(await exportJWK(privateKey)),
    use: "sig",
    alg: "ES256",
    kid: randomBytes(8).toString("hex"),
  };
  const headers = pageHeaders(new URL(publicUrl).origin);
  const configuration: Configuration = {
    clients: [
      {
        client_id: "svc",
        client_secret: clientSecret,
        redirect_uris: [`${new URL(publicUrl).origin}/sign_in/callback`],
        response_types: ["code"],
        grant_types: ["authorization_code"],
        token_endpoint_auth_method: "client_secret_basic",
        id_token_signed_response_alg: "ES256",
      },
    ],
    clientAuthMethods: ["client_secret_basic"],
    responseTypes: ["code"],
    scopes: scopes.split(" "),
    claims: {
      openid: ["sub"],
      email: ["email", "email_verified"],
      profile: ["name", "groups"],
      groups: ["groups"],
    },
    // Puts the claims into the ID token too, which saves the client a request.
    conformIdTokenClaims: false,
    enabledJWA: { idTokenSigningAlgValues: ["ES256"] },
    jwks: { keys: [key] },
    cookies: {
      keys: [randomBytes(32).toString("base64url")],
      short: { sameSite: "lax" },
      long: { sameSite: "lax" },
    },
    pkce: { required: () => true },
    features: { devInteractions: { enabled: false }, rpInitiatedLogout: { enabled: false } },
    interactions: { policy: signInPolicy(interactionPolicy), url: (_ctx, { uid }) => `/sign-in/${uid}` },
    ttl: {
      Interaction: 10 * minute,
      Session: 60 * minute,
      Grant: 60 * minute,
      AuthorizationCode: minute,
      AccessToken: 10 * minute,
      IdToken: 10 * minute,
    },
    findAccount: (_ctx, id) => {
      const user = trialUsers.find((one) => one.id === id);
      if (!user) return undefined;
      const { email, name, groups } = user;
      return {
        accountId: id,
        claims: async () => ({ sub: id, email, email_verified: true, name, groups: [...groups] }),
      };
    },
    // The only client is our own service, so no consent page is needed.
    loadExistingGrant: async ({ oidc }) => {
      const grant = new oidc.provider.Grant({
        accountId: oidc.session!.accountId!,
        clientId: oidc.client!.clientId,
      });
      grant.addOIDCScope(scopes);
      await grant.save();
      return grant;
    },
    renderError: (ctx, { error, error_description: detail }) => {
      ctx.set(headers);
      ctx.body = errorPage(error, detail ?? "The request is not valid.");
    },
  };
  // Its store is in memory and bounded, so that no client can exhaust the memory. A restart discards it with the keys.
  return quietly(() => new Provider(issuer, configuration));
}

/** Prompts again if the service requests another user than the one signed in here. */
function signInPolicy({ base, Check }: typeof interactionPolicy) {
  const policy = base();
  policy.get("login")!.checks.add(
    new Check("other_user", "Another user is requested", ({ oidc }) => {
      const wanted = findUser(String(oidc.params?.login_hint ?? ""));
      const signedIn = oidc.session?.accountId;
      if (!wanted || !signedIn || oidc.result?.login) return Check.NO_NEED_TO_PROMPT;
      return wanted.id === signedIn ? Check.NO_NEED_TO_PROMPT : Check.REQUEST_PROMPT;
    }),
  );
  policy.remove("consent");
  return policy;
}

/**
 * Suppresses two console warnings of oidc-provider: that Bun is not Node, although it works on Bun, as our tests show, and
 * that its store is in memory.
 */
async function quietly<T>(run: () => T | Promise<T>): Promise<T> {
  const { warn } = console;
  console.warn = () => {};
  try {
    return await run();
  } finally {
    console.warn = warn;
  }
}
