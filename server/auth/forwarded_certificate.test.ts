import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import {
  asAuthority,
  asClient,
  CertificateFolder,
  derOf,
} from "../../tests/support/http/client_certificates.ts";
import { signInToken, startTestServer, type TestServer } from "../../tests/support/http/server.ts";
import { startServing, useOwnServer } from "../../tests/support/http/serving.ts";

const certificates = new CertificateFolder();
const root = certificates.issue({ subject: "/CN=Root", extensions: asAuthority });
const of = (name: string) =>
  certificates.issue({ extensions: [...asClient, `subjectAltName=email:${name}@example.com`], by: root });
const [alice, bob] = [of("alice"), of("bob")];
const base64Of = ({ certificate }: typeof alice) => derOf(certificate).toString("base64");
const header = `:${base64Of(alice)}:`;
const pem = readFileSync(alice.certificate, "utf8");
const own = useOwnServer({
  SVC_MTLS_CA_CERTS: root.certificate,
  SVC_MTLS_PROXY_HEADER: "Client-Cert",
  SVC_PUBLIC_URL: "https://svc.example.com",
  SVC_DOMAIN: "example.com",
});

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({
    mtlsCaCerts: root.certificate,
    mtlsProxyHeader: "Client-Cert",
    proxyHeaders: true,
  });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  certificates[Symbol.dispose]();
});

const refusals = () => server.logged.filter((line) => line.includes("client certificate refused"));

/** What the server answers to these header lines of its trusted proxy, and the reason in its log. */
async function send(...lines: string[]): Promise<{ status: string; body: string; reason?: string }> {
  const before = refusals().length;
  const socket = connect({ host: "127.0.0.1", port: Number(new URL(server.url).port) });
  socket.write(["GET /whoami HTTP/1.1", "Host: x", "Connection: close", ...lines, "", ""].join("\r\n"));
  const text = Buffer.concat(await Array.fromAsync(socket)).toString();
  const [latest] = refusals().slice(before);
  const reason = latest && JSON.parse(latest).reason;
  return { status: text.slice(9, 12), body: text.split("\r\n\r\n")[1] ?? "", reason };
}

describe("one certificate is accepted", () => {
  test.each([
    ["as a byte sequence", header],
    ["as an escaped PEM", encodeURIComponent(pem)],
    ["as an escaped PEM with CRLF", encodeURIComponent(pem.replaceAll("\n", "\r\n"))],
    ["as an escaped PEM that leaves + and / alone", pem.replaceAll(" ", "%20").replaceAll("\n", "%0A")],
  ])("%s", async (_, value) => {
    const { status, body } = await send(`Client-Cert: ${value}`);
    expect([status, body]).toEqual(["200", expect.stringContaining("alice@example.com")]);
  });
});

describe("anything else is refused and logged", () => {
  test.each([
    ["the header twice", [`Client-Cert: ${header}`, `Client-Cert: :${base64Of(bob)}:`]],
    ["the header twice with the same value", [`Client-Cert: ${header}`, `client-cert: ${header}`]],
    ["the header with and without a value", ["Client-Cert: ", `Client-Cert: ${header}`]],
    ["several values", [`Client-Cert: ${header}, :${base64Of(bob)}:`]],
    ["a comma at the end", [`Client-Cert: ${header},`]],
    ["several certificates in a PEM", [`Client-Cert: ${encodeURIComponent(pem + pem)}`]],
    ["text after the PEM", [`Client-Cert: ${encodeURIComponent(pem)}x`]],
    ["a PEM without escapes", [`Client-Cert: ${pem.trim().replaceAll("\n", " ")}`]],
    ["padding in the middle", [`Client-Cert: :AAAA=${base64Of(alice)}:`]],
  ])("%s", async (_, lines) => {
    const { status, body, reason } = await send(...lines);
    expect([status, reason]).toEqual(["401", "malformed header"]);
    expect(body).toContain("The client certificate is not accepted");
  });

  test("a certificate of 100 kB, and the server continues", async () => {
    const { status } = await send(`Client-Cert: :${"A".repeat(100_000)}:`);
    expect(["401", "431"]).toContain(status);
    expect((await send(`Client-Cert: ${header}`)).status).toBe("200");
  });
});

test.each([
  ["HAProxy's without a value", "Client-Cert: "],
  ["HAProxy's without a certificate", "Client-Cert: ::"],
  ["Caddy's placeholder", "Client-Cert: :{http.request.tls.client.certificate_der_base64}:"],
  ["Envoy's, which svc does not read", `X-Forwarded-Client-Cert: Cert="${encodeURIComponent(pem)}"`],
  ["nginx's, which is not the configured one", `X-SSL-Client-Cert: ${encodeURIComponent(pem)}`],
])("no certificate is in %s header: a token is needed, and enough", async (_, line) => {
  const { status, body, reason } = await send(line);
  expect([status, reason]).toEqual(["401", undefined]);
  expect(body).toContain("Sign in first");
  const token = await signInToken(server);
  expect((await send(line, `Authorization: Bearer ${token}`)).status).toBe("200");
});

test.each([
  ["192.0.2.1", 401],
  ["127.0.0.1", 200],
])("over a Unix socket, --forwarded-allow-ips %s: %d", async (addresses, status) => {
  const unix = join(own.path, "forwarded.sock");
  const args = ["--uds", unix, "--proxy-headers", "--forwarded-allow-ips", addresses];
  const options = { app: "server/main:app", env: own.env, port: false };
  await using started = await startServing(own.path, args, options);
  const headers = { "client-cert": header };
  expect((await fetch("http://localhost/whoami", { unix, headers })).status).toBe(status);
  if (status === 401) await started.says("header from an untrusted address");
});
