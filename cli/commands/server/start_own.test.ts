import { expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "../../../platform/free_port.ts";
import { svc } from "../../../tests/support/cli/process.ts";
import { exchange, statusesOf } from "../../../tests/support/http/raw_http.ts";
import { useOwnServer } from "../../../tests/support/http/serving.ts";
import { within } from "../../../tests/support/process/until.ts";

const own = useOwnServer({ SVC_CHALLENGE_LEGACY: "allow" });

const start = (...args: string[]) => own.start(args);

test.each([[], ["--workers", "2"]])(
  "SIGTERM with %p: a held poll is answered pending, and the exit code is 0",
  async (...args) => {
    await using server = await start(...args);
    const generated = await server.fetch("/noauth/v1/challenge_generator/alice@example.com");
    const { polling_url: url } = (await generated.json()) as { polling_url: string };
    const poll = server.fetch(new URL(url).pathname, { headers: { prefer: "wait=20" } });
    // Wait until the poll is held.
    await Bun.sleep(1000);
    const end = server.end("SIGTERM");
    // Long before it would time out.
    const answer = await within("the poll to be answered", poll, 12);
    expect([answer.status, await answer.json()]).toEqual([200, { status: "pending" }]);
    expect((await end).code).toBe(0);
  },
);

test("an invalid Host is refused, also below --root-path", async () => {
  await using server = await start("--root-path", "/svc");
  const answer = await exchange(
    server.port,
    "GET /svc/healthcheck HTTP/1.1\r\nHost: a b\r\nConnection: close\r\n\r\n",
  );
  expect(statusesOf(answer)).toEqual([400]);
});

test.each([[], ["--workers", "2"]])(
  "--ssl-* with %p: each path is found, and HSTS is sent",
  async (...args) => {
    const [key, cert] = ["key.pem", "cert.pem"].map((name) => join(own.path, name)) as [string, string];
    const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"];
    const made = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, ...subject];
    expect(spawnSync("openssl", made).status).toBe(0);
    await using server = await start("--ssl-keyfile", key, "--ssl-certfile", cert, ...args);
    const ask = (path: string, headers = {}) =>
      fetch(`https://127.0.0.1:${server.port}${path}`, { headers, tls: { ca: readFileSync(cert, "utf8") } });
    const answer = await ask("/healthcheck");
    expect([answer.status, answer.headers.get("strict-transport-security")]).toEqual([
      200,
      "max-age=31536000",
    ]);
    expect((await ask("/documents/1")).status).toBe(401);
    const { stdout } = spawnSync(
      "openssl",
      ["s_client", "-connect", `127.0.0.1:${server.port}`, "-quiet", "-ign_eof"],
      { input: "GET /healthcheck HTTP/1.0\r\n\r\n", encoding: "utf8" },
    );
    expect(stdout).toMatch(/^HTTP\/1\.1 200 .*^strict-transport-security:/ims);
    expect((await ask("/nowhere")).status).toBe(404);
  },
);

test("NODE_EXTRA_CA_CERTS: an issuer's certificate of a private authority is trusted only with it", async () => {
  const [key, cert] = ["issuer.key", "issuer.pem"].map((name) => join(own.path, name)) as [string, string];
  const subject = ["-subj", "/CN=issuer", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"];
  const made = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, ...subject];
  expect(spawnSync("openssl", made).status).toBe(0);
  using issuer = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    tls: { key: Bun.file(key), cert: Bun.file(cert) },
    fetch({ url }) {
      const { origin } = new URL(url);
      return Response.json({
        issuer: origin,
        authorization_endpoint: `${origin}/authorize`,
        token_endpoint: `${origin}/token`,
        jwks_uri: `${origin}/jwks`,
        response_types_supported: ["code"],
      });
    },
  });
  const signIn = async (env: Record<string, string>, said?: string) => {
    await using server = await own.start([], {
      SVC_OIDC_ISSUER: `https://127.0.0.1:${issuer.port}`,
      ...env,
    });
    const generated = await server.fetch("/noauth/v1/challenge_generator/alice@example.com");
    const { challenge_url: url } = (await generated.json()) as { challenge_url: string };
    const bound = await server.fetch(new URL(url).pathname);
    const [cookie = ""] = bound.headers.get("set-cookie")!.split(";");
    const answer = await server.fetch(bound.headers.get("location")!, { headers: { cookie } });
    // The line is written after the answer.
    if (said !== undefined) await server.says(said);
    return [answer.status, answer.headers.get("location")];
  };
  expect(await signIn({ NODE_EXTRA_CA_CERTS: cert })).toEqual([
    303,
    expect.stringContaining(`https://127.0.0.1:${issuer.port}/authorize?`),
  ]);
  expect(await signIn({}, '"code":"DEPTH_ZERO_SELF_SIGNED_CERT"')).toEqual([503, null]);
});

test("--no-access-log: requests are not logged, the rest is", async () => {
  await using server = await start("--no-access-log", "--log-level", "debug");
  expect((await server.fetch("/healthcheck")).status).toBe(200);
  // A line would be written after the answer.
  const { stderr } = await server.end();
  expect(stderr).toContain("listening on");
  expect(stderr).not.toContain('"msg":"request"');
});

test.each([[[]], [["--workers", "2"]]])(
  "with %p: all faults of the configuration are reported together",
  async (args) => {
    const env = {
      SVC_DATABASE_URL: "",
      SVC_KEY_SECRET: "",
      SVC_OIDC_ISSUER: "",
      STATIC_DIR: join(own.path, "nowhere"),
      SVC_TOKEN_LIFETIME: "soon",
      SVC_FORWARDED_ALLOW_IPS: "everyone",
      SVC_PLUGIN_TERM: "glossaryy",
      SVC_OIDC_CLIENT_SECRET_FILE: join(own.path, "none"),
    };
    const command = ["server", "start", "server/main:app", "--port", String(await freePort()), ...args];
    const { code, stdout, stderr } = await svc(command, { ...own.env, ...env }, own.path);
    expect([code, stdout]).toEqual([1, ""]);
    const names = stderr.match(/\b(SVC_[A-Z_]+|STATIC_DIR)(?=:| is not set)/g);
    expect([...new Set(names)].sort()).toEqual([
      "STATIC_DIR",
      "SVC_DATABASE_URL",
      "SVC_FORWARDED_ALLOW_IPS",
      "SVC_KEY_SECRET",
      "SVC_OIDC_CLIENT_SECRET_FILE",
      "SVC_OIDC_ISSUER",
      "SVC_PLUGIN_TERM",
      "SVC_TOKEN_LIFETIME",
    ]);
  },
);
