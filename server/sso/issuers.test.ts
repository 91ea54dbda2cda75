import { expect, test } from "bun:test";
import { createServer } from "node:http";
import { isNull } from "drizzle-orm";
import { createEmulator, type EmulatorOptions } from "emulate";
import { exportJWK, generateKeyPair } from "jose";
import { token } from "../../drizzle/schema/index.ts";
import { freePort } from "../../platform/free_port.ts";
import { TestBrowser } from "../../tests/support/browser/browser.ts";
import { newChallenge, poll, startTestServer, type TestServer } from "../../tests/support/http/server.ts";
import { listen } from "../../tests/support/listen.ts";

/** Single sign-on with issuers that other people wrote. */

const clientSecret = "issuer-client-secret";

/** Signs in at svc and approves. `atIssuer` signs in on the issuer's page. */
async function signIn(
  server: TestServer,
  atIssuer: (browser: TestBrowser, page: Awaited<ReturnType<TestBrowser["open"]>>) => Promise<Response>,
  browser = new TestBrowser(),
): Promise<{ headers: Record<string, string>; whoami: unknown }> {
  const challenge = await newChallenge(server);
  const back = await atIssuer(browser, await browser.open(challenge.challengeUrl));
  const { url, text, status } = await browser.open(new URL(back.headers.get("location")!, server.url).href);
  expect({ status, asked: text.includes("Sign in a terminal?") }).toEqual({ status: 200, asked: true });
  await browser.submit(url, text, { decision: "approve" });
  const { body } = await poll(server, challenge);
  const headers = { authorization: `Bearer ${body.encoded_jwt}` };
  return { headers, whoami: await (await server.fetch("/whoami", { headers })).json() };
}

/** Presses the button of the user on a page of emulate. */
async function chooseAlice(browser: TestBrowser, { url, text }: { url: string; text: string }) {
  const form = text.split("<form").find((one) => one.includes("alice@example.com"))!;
  const fields = form.matchAll(/name="(\w+)" value="([^"]*)"/g).map(([, name, value]) => [name!, value!]);
  const action = new URL(/action="([^"]+)"/.exec(form)![1]!, url).href;
  return browser.request(action, { method: "POST", body: new URLSearchParams([...fields]) });
}

/** One user, and one client: the emulated Google names client_secret_basic, but refuses it, so it gets none. */
function seedOf(service: string, publicUrl: string): EmulatorOptions["seed"] {
  const login = "alice@example.com";
  const client = {
    client_id: "svc",
    client_secret: clientSecret,
    name: "svc",
    redirect_uris: [`${publicUrl}/sign_in/callback`],
  };
  return {
    [service]: {
      users: [{ login, email: login, name: "Alice Adams", first_name: "Alice", last_name: "Adams" }],
      oauth_clients: service === "google" ? [] : [client],
    },
  };
}

test.each([
  ["okta", ""],
  ["google", ""],
  ["microsoft", "/9188040d-6c67-4c5b-b112-36a304b66dad/v2.0"],
] as const)("the emulated %s signs people in, and so does its replacement at once", async (service, path) => {
  const port = await freePort();
  await using server = await startTestServer({ oidcIssuer: `http://localhost:${port}${path}` });
  for (let start = 1; start <= 2; start += 1) {
    const emulator = await createEmulator({ service, port, seed: seedOf(service, server.url) });
    expect((await signIn(server, chooseAlice)).whoami).toMatchObject({
      user: "alice@example.com",
      admin: false,
    });
    await emulator.close();
  }
});

test("the emulated Okta is asked for groups when access is renewed, and ends a deleted user's sign-in", async () => {
  const port = await freePort();
  const url = `http://localhost:${port}`;
  await using server = await startTestServer({ oidcIssuer: url, oidcScope: "openid email profile groups" });
  const { okta } = seedOf("okta", server.url) as { okta: { users: object[] } };
  const [alice, oncall] = ["00ualice", "00goncall"];
  const emulator = await createEmulator({
    service: "okta",
    port,
    seed: {
      tokens: { manager: { login: "manager" } },
      okta: {
        ...okta,
        users: okta.users.map((user) => ({ ...user, okta_id: alice })),
        groups: [{ okta_id: oncall, name: "oncall" }],
        group_memberships: [{ group_okta_id: oncall, user_okta_id: alice }],
      },
    } as EmulatorOptions["seed"],
  });
  const remove = (path: string) =>
    fetch(`${url}/api/v1/${path}`, { method: "DELETE", headers: { authorization: "Bearer manager" } });
  const { headers, whoami } = await signIn(server, chooseAlice);
  expect(whoami).toMatchObject({ groups: ["oncall"] });
  const renewed = async () => {
    server.clock.advance(61);
    // There is no such lease, but the groups are refreshed before it is looked for.
    await server.fetch("/access/leases/1/renew", { method: "POST", headers });
    return (await server.fetch("/whoami", { headers })).json();
  };
  expect((await remove(`groups/${oncall}/users/${alice}`)).status).toBe(204);
  expect(await renewed()).toMatchObject({ groups: [] });
  expect(await renewed()).toMatchObject({ groups: [] });
  // Okta deactivates a user first.
  for (let i = 0; i < 2; i += 1) expect((await remove(`users/${alice}`)).status).toBe(204);
  expect(await renewed()).toMatchObject({ status: 401 });
  await emulator.close();
});

/** An oidc-provider that signs with `alg`; everybody is signed in as the name that is typed. */
async function startProvider(port: number, alg: "RS256" | "ES256" | "EdDSA", publicUrl: string) {
  const { Provider } = await import("oidc-provider");
  const { privateKey } = await generateKeyPair(alg, { extractable: true });
  const provider = new Provider(`http://127.0.0.1:${port}`, {
    clients: [
      {
        client_id: "svc",
        client_secret: clientSecret,
        redirect_uris: [`${publicUrl}/sign_in/callback`],
        id_token_signed_response_alg: alg,
        backchannel_logout_uri: `${publicUrl}/backchannel_logout`,
        backchannel_logout_session_required: true,
      },
    ],
    claims: { openid: ["sub"], email: ["email"], profile: ["name"] },
    conformIdTokenClaims: false,
    features: { backchannelLogout: { enabled: true } },
    enabledJWA: { idTokenSigningAlgValues: [alg] },
    jwks: { keys: [{ ...(await exportJWK(privateKey)), use: "sig", alg }] },
    // Another path for each key: what is cached of the last one leads nowhere.
    routes: { token: `/${alg}/token`, jwks: `/${alg}/keys` },
    cookies: { keys: ["cookies"] },
    findAccount: (_ctx, id) => ({ accountId: id, claims: () => ({ sub: id, email: id }) }),
    loadExistingGrant: async ({ oidc }) => {
      const grant = new oidc.provider.Grant({ accountId: oidc.session!.accountId!, clientId: "svc" });
      grant.addOIDCScope("openid email profile");
      await grant.save();
      return grant;
    },
  });
  const listener = createServer(provider.callback());
  await listen(listener, { port });
  return {
    [Symbol.asyncDispose]: async () => {
      listener.closeAllConnections();
      await new Promise((done) => listener.close(done));
    },
  };
}

async function typeAlice(browser: TestBrowser, { url, text }: { url: string; text: string }) {
  const action = new URL(/action="([^"]+)"/.exec(text)![1]!, url).href;
  const body = new URLSearchParams({ prompt: "login", login: "alice@example.com", password: "x" });
  const answer = await browser.request(action, { method: "POST", body });
  return browser.request(new URL(answer.headers.get("location")!, url).href);
}

test("an oidc-provider that changes its algorithm, key and addresses signs people in at once", async () => {
  const port = await freePort();
  await using server = await startTestServer({ oidcIssuer: `http://127.0.0.1:${port}` });
  for (const alg of ["RS256", "ES256", "EdDSA", "RS256"] as const) {
    await using _provider = await startProvider(port, alg, server.url);
    expect((await signIn(server, typeAlice)).whoami).toMatchObject({ user: "alice@example.com" });
  }
});

test("an oidc-provider ends the sign-in at svc when its user signs out there", async () => {
  const port = await freePort();
  await using server = await startTestServer({ oidcIssuer: `http://127.0.0.1:${port}` });
  await using _provider = await startProvider(port, "ES256", server.url);
  // Its clock is the provider's, or a logout token would be too new.
  server.clock.advance((Date.now() - server.clock.now().getTime()) / 1000);
  const browser = new TestBrowser();
  await signIn(server, typeAlice, browser);
  const { url, text } = await browser.open(`http://127.0.0.1:${port}/session/end`);
  expect(await server.db.$count(token, isNull(token.revokedAt))).toBe(1);
  const [action, xsrf] = [/action="([^"]+)"/, /name="xsrf" value="([^"]+)"/].map((of) => of.exec(text)![1]!);
  const body = new URLSearchParams({ xsrf: xsrf!, logout: "yes" });
  await browser.request(new URL(action!, url).href, { method: "POST", body });
  expect(await server.db.$count(token, isNull(token.revokedAt))).toBe(0);
});
