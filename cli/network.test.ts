import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { freePort } from "../platform/free_port.ts";
import { FakeServer } from "../tests/support/cli/fake_server.ts";
import { configHome } from "../tests/support/cli/io.ts";
import { svc } from "../tests/support/cli/process.ts";
import { asAuthority, CertificateFolder } from "../tests/support/http/client_certificates.ts";

/** Proxies and certificate authorities by the usual variables, as a process sees them. */

const home = configHome();
let server: FakeServer;
let secure: FakeServer;
/** Request lines that the proxy saw. It forwards nothing to the named host, but everything to `server`. */
let proxied: string[] = [];
let proxy: Bun.TCPSocketListener;

beforeAll(async () => {
  openssl(
    "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=test -keyout ca.key -out ca.pem",
  );
  openssl(
    "req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=test -keyout key.pem -out request.pem",
  );
  await Bun.write(join(home, "names"), "subjectAltName=IP:127.0.0.1");
  openssl(
    "x509 -req -in request.pem -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out cert.pem",
  );
  const file = (name: string) => Bun.file(join(home, name));
  secure = new FakeServer({ tls: { key: file("key.pem"), cert: file("cert.pem") } });
  server = new FakeServer();
  proxy = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      async data(socket, data) {
        const [line = ""] = data.toString().split("\r\n");
        proxied.push(line);
        const body = JSON.stringify({
          user: "bob@example.com",
          groups: [],
          admin: false,
          expires_at: server.expiresAt,
        });
        const head = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: ${body.length}`;
        socket.end(line.startsWith("CONNECT") ? "HTTP/1.1 403 No\r\n\r\n" : `${head}\r\n\r\n${body}`);
      },
    },
  });
});
afterAll(() => {
  for (const each of [server, secure, proxy]) each.stop();
});

function openssl(command: string): void {
  const { exitCode, stderr } = Bun.spawnSync(["openssl", ...command.split(" ")], {
    cwd: home,
    stderr: "pipe",
  });
  if (exitCode !== 0) throw new Error(stderr.toString());
}

async function whoami(url: string, env: Record<string, string>, ...options: string[]) {
  proxied = [];
  return await svc(["whoami", ...options], {
    XDG_CONFIG_HOME: configHome(),
    SVC_SERVER: url,
    SVC_TOKEN: server.token,
    ...env,
  });
}
const proxyUrl = () => `http://127.0.0.1:${proxy.port}`;

describe("a certificate of a private authority", () => {
  test("is refused, with the fix", async () => {
    expect(await whoami(secure.url, { SSL_CERT_DIR: "/nonexistent" })).toEqual({
      code: 1,
      stdout: "",
      stderr: `svc: the certificate of ${secure.url} is not trusted (UNABLE_TO_VERIFY_LEAF_SIGNATURE); if your own authority signed it, set NODE_EXTRA_CA_CERTS to its PEM file\n`,
    });
  });
  test.each(["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"])("is accepted with %s", async (name) => {
    expect(await whoami(secure.url, { [name]: join(home, "ca.pem") })).toMatchObject({ code: 0, stderr: "" });
  });
});

test.each([
  ["has expired", { to: "20210101000000Z" }],
  ["is not valid yet", { from: "20980101000000Z" }],
])("a server's certificate that %s may be due to the clock", async (fault, times) => {
  using certificates = new CertificateFolder();
  const by = certificates.issue({ subject: "/CN=CA", extensions: asAuthority });
  const { key, certificate } = certificates.issue({
    by,
    extensions: ["subjectAltName=IP:127.0.0.1"],
    ...times,
  });
  const early = new FakeServer({ tls: { key: Bun.file(key), cert: Bun.file(certificate) } });
  const { code, stderr } = await whoami(early.url, { NODE_EXTRA_CA_CERTS: by.certificate });
  early.stop();
  expect([code, stderr.replace(/\S+Z\n$/, "NOW")]).toEqual([
    1,
    `svc: the certificate of ${early.url} ${fault}, or the clock of this machine is wrong: it says NOW`,
  ]);
});

describe("a proxy", () => {
  test("carries http, after the warning", async () => {
    const { code, stdout, stderr } = await whoami(
      "http://svc.example.test",
      { HTTP_PROXY: proxyUrl() },
      "--json",
    );
    expect({ code, user: JSON.parse(stdout).user }).toEqual({ code: 0, user: "bob@example.com" });
    expect(stderr).toStartWith("svc: warning: http://svc.example.test uses plain http");
    expect(proxied).toEqual(["GET http://svc.example.test/whoami HTTP/1.1"]);
  });
  test("carries https as a tunnel, and may refuse", async () => {
    const { code, stderr } = await whoami("https://svc.example.test", { HTTPS_PROXY: proxyUrl() });
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: `svc: cannot reach https://svc.example.test through the proxy http://127.0.0.1:${proxy.port} (HTTPS_PROXY): the proxy refused the connection\n`,
    });
    expect(proxied).toEqual(["CONNECT svc.example.test:443 HTTP/1.1"]);
  });
  test.each(["http://svc.example.test", "https://svc.example.test"])(
    "that wants a password for %s is named",
    async (url) => {
      using closed = Bun.listen({
        hostname: "127.0.0.1",
        port: 0,
        socket: {
          data: (socket) => void socket.end("HTTP/1.1 407 No\r\ncontent-length: 8\r\n\r\n<p>Hello"),
        },
      });
      const address = `http://127.0.0.1:${closed.port}`;
      const { code, stderr } = await whoami(url, { ALL_PROXY: address, HTTP_PROXY: address });
      expect({ code, last: stderr.split("\n").at(-2) }).toEqual({
        code: 1,
        last: expect.stringMatching(
          /^svc: cannot reach \S+ through the proxy http:\/\/127.0.0.1:\d+ \((ALL|HTTP)_PROXY\): the proxy asks for a user name and a password \(HTTP 407\)/,
        ),
      });
    },
  );
  test("of another protocol is named as the cause", async () => {
    const { code, stderr } = await whoami("https://svc.example.test", {
      HTTPS_PROXY: "socks5://127.0.0.1:1080",
    });
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr:
        "svc: cannot reach https://svc.example.test through the proxy socks5://127.0.0.1:1080 (HTTPS_PROXY): this is not an http or https address\n",
    });
  });
  test("that does not answer is named, without its password", async () => {
    const free = await freePort();
    for (const [name, value, shown, fault] of [
      ["HTTPS_PROXY", `http://me:secret@127.0.0.1:${free}`, `http://127.0.0.1:${free}`, "connection refused"],
      ["ALL_PROXY", "http://proxy.invalid:3128", "http://proxy.invalid:3128", "no such host"],
    ] as const) {
      const { stderr } = await whoami("https://svc.example.test", { [name]: value });
      const through = `through the proxy ${shown} (${name})`;
      expect(stderr).toBe(`svc: cannot reach https://svc.example.test ${through}: ${fault}\n`);
    }
  });
  test.each(["example.test", "other,.example.test", "svc.example.test:443", "*"])(
    "is not used with NO_PROXY=%s",
    async (NO_PROXY) => {
      const { stderr } = await whoami("https://svc.example.test", { HTTPS_PROXY: proxyUrl(), NO_PROXY });
      expect(stderr).toBe("svc: cannot reach https://svc.example.test: no such host\n");
      expect(proxied).toEqual([]);
    },
  );
  test("is never used for this machine", async () => {
    const { code } = await whoami(server.url, {
      HTTP_PROXY: proxyUrl(),
      ALL_PROXY: proxyUrl(),
      http_proxy: proxyUrl(),
    });
    expect({ code, proxied }).toEqual({ code: 0, proxied: [] });
  });
});
