import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "../platform/free_port.ts";
import {
  asAuthority,
  asClient,
  CertificateFolder,
  derOf,
  type Issued,
  thumbprintOf,
  tlsWith,
} from "./support/http/client_certificates.ts";
import { type ProxyName, startProxy } from "./support/http/proxies.ts";
import {
  decide,
  newChallenge,
  poll,
  signInToken,
  startTestServer,
  type TestServer,
} from "./support/http/server.ts";

// With the configurations in docs/mutual-tls.md.

const page = readFileSync(join(import.meta.dir, "../docs/mutual-tls.md"), "utf8");
const headers: Record<ProxyName, string> = {
  haproxy: "Client-Cert",
  caddy: "Client-Cert",
  nginx: "X-SSL-Client-Cert",
};

const certificates = new CertificateFolder();
const root = certificates.issue({ subject: "/CN=Root", extensions: asAuthority });
const stranger = certificates.issue({ subject: "/CN=Stranger", extensions: asAuthority });
const of = (name: string, by: Issued) =>
  certificates.issue({ by, extensions: [...asClient, `subjectAltName=email:${name}@example.com`] });
const [alice, bob, eve] = [of("alice", root), of("bob", root), of("alice", stranger)];
const own = certificates.server();

afterAll(() => certificates[Symbol.dispose]());

/** The configuration in the documentation, with our addresses and files. */
function configuration(proxy: ProxyName, port: number, server: number): string {
  const [, text = ""] = new RegExp(`\`\`\`${proxy}\n(.+?)\`\`\``, "s").exec(page) ?? [];
  return text
    .replace(/^ *trusted_ca_cert_file .*$/m, `$&\ntrusted_ca_cert_file ${stranger.certificate}`)
    .replaceAll("/etc/svc/", `${certificates.path}/`)
    .replaceAll("127.0.0.1:8000", `127.0.0.1:${server}`)
    .replaceAll("https://svc.example.com:8443", `https://localhost:${port}`)
    .replaceAll("8443", String(port));
}

async function start(proxy: ProxyName, server: number) {
  const port = await freePort();
  const folder = certificates.at(proxy);
  const pem = readFileSync(own.certificate, "utf8") + readFileSync(own.key, "utf8");
  writeFileSync(certificates.at("server.pem"), pem);
  copyFileSync(own.key, certificates.at("server.key"));
  // It accepts more than the server does.
  const both = [root, stranger].map(({ certificate }) => readFileSync(certificate, "utf8"));
  writeFileSync(certificates.at("clients.pem"), both.join(""));
  const text = configuration(proxy, port, server);
  expect(text).toContain(`127.0.0.1:${server}`);
  // A name, because Caddy compares it with the one in the handshake.
  const ask = (client: Issued | undefined, path = "/whoami", init: BunFetchRequestInit = {}) =>
    fetch(`https://localhost:${port}${path}`, { tls: tlsWith(client), keepalive: false, ...init });
  const started = await startProxy(proxy, folder, text, () =>
    ask(undefined, "/healthcheck").catch(() => undefined),
  );
  return { ask, [Symbol.asyncDispose]: () => started[Symbol.asyncDispose]() };
}

const lastRefusal = ({ logged }: TestServer) =>
  logged
    .map((line) => JSON.parse(line))
    .filter(({ msg }) => msg === "client certificate refused")
    .at(-1);

describe.each(["haproxy", "caddy", "nginx"] as const)("%s", (proxy) => {
  let server: TestServer;
  let through: Awaited<ReturnType<typeof start>>;
  beforeAll(async () => {
    server = await startTestServer({
      mtlsCaCerts: root.certificate,
      mtlsProxyHeader: headers[proxy],
      proxyHeaders: true,
    });
    through = await start(proxy, Number(new URL(server.url).port));
  }, 60_000);
  afterAll(async () => {
    await through?.[Symbol.asyncDispose]();
    await server?.[Symbol.asyncDispose]();
  });

  test("forwards the certificate of its client", async () => {
    for (const [client, user] of [
      [alice, "alice@example.com"],
      [bob, "bob@example.com"],
    ] as const) {
      const answer = await through.ask(client);
      expect([answer.status, await answer.json()]).toMatchObject([200, { user }]);
    }
  });

  test("a client without certificate needs a token", async () => {
    const answer = await through.ask(undefined);
    expect([answer.status, await answer.json()]).toMatchObject([401, { detail: "Sign in first: svc login" }]);
    const bearer = { headers: { authorization: `Bearer ${await signInToken(server)}` } };
    expect((await through.ask(undefined, "/whoami", bearer)).status).toBe(200);
  });

  test("a client's own headers change nothing", async () => {
    const forged = {
      headers: {
        "client-cert": `:${derOf(bob.certificate).toString("base64")}:`,
        "client-cert-chain": `:${derOf(root.certificate).toString("base64")}:`,
        "x-ssl-client-cert": encodeURIComponent(readFileSync(bob.certificate, "utf8")),
        "x-forwarded-for": "127.0.0.1",
      },
    };
    const answer = await through.ask(alice, "/whoami", forged);
    expect([answer.status, await answer.json()]).toMatchObject([200, { user: "alice@example.com" }]);
    expect((await through.ask(undefined, "/whoami", forged)).status).toBe(401);
  });

  test("the server verifies the chain again", async () => {
    expect((await through.ask(eve)).status).toBe(401);
    expect(lastRefusal(server)).toMatchObject({
      reason: "unknown authority",
      certificate: thumbprintOf(eve.certificate),
    });
  });

  test("a token collected through it needs the certificate", async () => {
    const challenge = await newChallenge(server, { user: server.issuer.user });
    await decide(challenge, "approve");
    const over = { fetch: (path: string, init: RequestInit = {}) => through.ask(alice, path, init) };
    const token = (await poll(over, challenge)).body.encoded_jwt;
    const bearer = { headers: { authorization: `Bearer ${token}` } };
    const statuses = [
      await through.ask(alice, "/whoami", bearer),
      await through.ask(bob, "/whoami", bearer),
      await through.ask(undefined, "/whoami", bearer),
      await server.fetch("/whoami", bearer),
    ].map(({ status }) => status);
    expect(statuses).toEqual([200, 401, 401, 401]);
  });
});

describe("the header from anyone else is refused and logged", () => {
  const header = `:${derOf(alice.certificate).toString("base64")}:`;
  const trusting = { mtlsCaCerts: root.certificate, mtlsProxyHeader: "Client-Cert", proxyHeaders: true };
  test.each([
    ["an address that is no proxy", { ...trusting, trustedProxies: "192.0.2.1" }],
    ["a proxy, without --proxy-headers", { ...trusting, proxyHeaders: false, mtlsProxyHeader: undefined }],
    ["a proxy, without SVC_MTLS_PROXY_HEADER", { ...trusting, mtlsProxyHeader: undefined }],
  ])("%s", async (_, { mtlsProxyHeader, ...settings }) => {
    await using server = await startTestServer({
      ...settings,
      ...(mtlsProxyHeader === undefined ? {} : { mtlsProxyHeader }),
    });
    const token = await signInToken(server);
    const bearer: Record<string, string> = { authorization: `Bearer ${token}` };
    for (const more of [{}, bearer]) {
      const answer = await server.fetch("/whoami", { headers: { "client-cert": header, ...more } });
      expect([answer.status, await answer.json()]).toMatchObject([
        401,
        { detail: "The client certificate is not accepted" },
      ]);
    }
    expect(lastRefusal(server)).toMatchObject({
      reason: "header from an untrusted address",
      address: "127.0.0.1",
    });
  });
});

test("Client-Cert-Chain has the authorities between the certificate and one that is trusted", async () => {
  await using server = await startTestServer({
    mtlsCaCerts: root.certificate,
    mtlsProxyHeader: "Client-Cert",
    proxyHeaders: true,
  });
  const middle = certificates.issue({ subject: "/CN=Middle", extensions: asAuthority, by: root });
  const headerOf = ({ certificate }: Issued) => `:${derOf(certificate).toString("base64")}:`;
  const own = { "client-cert": headerOf(of("carol", middle)) };
  const statusOf = async (headers: Record<string, string>) =>
    (await server.fetch("/whoami", { headers })).status;
  expect(await statusOf(own)).toBe(401);
  expect(await statusOf({ ...own, "client-cert-chain": headerOf(middle) })).toBe(200);
});
