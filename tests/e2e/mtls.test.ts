import { afterAll, expect, test } from "bun:test";
import { appendFileSync, copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { connect as connectTls } from "node:tls";
import { freePort } from "../../platform/free_port.ts";
import {
  asAuthority,
  asClient,
  CertificateFolder,
  derOf,
  type Issued,
  thumbprintOf,
  tlsWith,
} from "../support/http/client_certificates.ts";
import { type Started, useOwnServer } from "../support/http/serving.ts";
import { descendants } from "../support/process/processes.ts";
import { until } from "../support/process/until.ts";

const certificates = new CertificateFolder();
afterAll(() => certificates[Symbol.dispose]());
const authority = (name: string) => certificates.issue({ subject: `/CN=${name}`, extensions: asAuthority });
const [root, next] = [authority("Root"), authority("Next")];
const of = (user: string, by: Issued, more = {}) =>
  certificates.issue({ by, extensions: [...asClient, `subjectAltName=email:${user}@example.com`], ...more });
const alice = of("alice", root);
const own = certificates.server();
const server = useOwnServer({ SVC_DOMAIN: "example.com" });

async function start(authorities: string, args: readonly string[] = []): Promise<Started & { mtls: number }> {
  const mtls = await freePort();
  const files = [
    "--mtls-keyfile",
    own.key,
    "--mtls-certfile",
    own.certificate,
    "--mtls-ca-certs",
    authorities,
  ];
  return { ...(await server.start(["--mtls-port", String(mtls), ...files, ...args])), mtls };
}

const ask = (port: number, client: Issued | undefined, path = "/whoami", init: BunFetchRequestInit = {}) =>
  fetch(`https://127.0.0.1:${port}${path}`, { tls: tlsWith(client), keepalive: false, ...init });

test("curl with a certificate is its user; the log has the reason for a refusal", async () => {
  await using started = await start(root.certificate);
  const curl = (client: Issued) => {
    const { stdout } = Bun.spawnSync([
      "curl",
      "-s",
      "--cacert",
      own.certificate,
      "--cert",
      client.chain,
      "--key",
      client.key,
      "-w",
      " %{http_code}",
      `https://localhost:${started.mtls}/whoami`,
    ]);
    return stdout.toString();
  };
  expect(curl(alice)).toMatch(/"user":"alice@example.com".* 200$/);
  const expired = of("alice", root, { to: "20210101000000Z" });
  expect(curl(expired)).toMatch(/ 401$/);
  await started.says("client certificate refused");
  const line = started
    .said()
    .split("\n")
    .find((each) => each.includes("client certificate refused"))!;
  expect(JSON.parse(line)).toMatchObject({
    level: 40,
    reason: "expired",
    certificate: thumbprintOf(expired.certificate),
    address: "127.0.0.1",
  });
});

test("SIGHUP reads the authorities again; unusable ones change nothing", async () => {
  const file = certificates.at("authorities.pem");
  copyFileSync(root.certificate, file);
  await using started = await start(file);
  const bob = of("bob", next);
  expect((await ask(started.mtls, bob)).status).toBe(401);
  appendFileSync(file, readFileSync(next.certificate));
  process.kill(started.pid, "SIGHUP");
  await started.says("certificate reloaded");
  expect((await ask(started.mtls, bob)).status).toBe(200);
  writeFileSync(file, "noise");
  process.kill(started.pid, "SIGHUP");
  await started.says("cannot reload the certificate; the old one stays in use");
  expect((await ask(started.mtls, bob)).status).toBe(200);

  // A connection that stays open keeps no authority.
  const onKept = async () => (await ask(started.mtls, alice, "/whoami", { keepalive: true })).status;
  expect(await onKept()).toBe(200);
  copyFileSync(next.certificate, file);
  process.kill(started.pid, "SIGHUP");
  await until("the removal of an authority", async () => (await onKept()) === 401);
  expect((await ask(started.mtls, bob)).status).toBe(200);
});

test("SIGHUP reads the authorities again without any other certificate, behind a proxy", async () => {
  const file = certificates.at("proxied.pem");
  copyFileSync(root.certificate, file);
  await using started = await server.start(["--proxy-headers", "--mtls-ca-certs", file], {
    SVC_MTLS_PROXY_HEADER: "Client-Cert",
  });
  const header = `:${derOf(of("bob", next).certificate).toString("base64")}:`;
  const statusOf = async () =>
    (await started.fetch("/whoami", { headers: { "client-cert": header } })).status;
  expect(await statusOf()).toBe(401);
  appendFileSync(file, readFileSync(next.certificate));
  process.kill(started.pid, "SIGHUP");
  await started.says("certificate authorities of clients reloaded");
  expect(await statusOf()).toBe(200);
  expect(started.said()).not.toContain("SIGHUP changed nothing");
});

test("with workers, each of them knows certificates, and SIGHUP replaces them", async () => {
  await using started = await start(root.certificate, ["--workers", "2"]);
  const workers = () => descendants(started.pid).map(({ pid }) => pid);
  const before = workers();
  const faults: string[] = [];
  let running = true;
  const load = [1, 2].map(async () => {
    while (running) {
      const status = await ask(started.mtls, alice).then(
        (answer) => answer.status,
        (error) => String(error),
      );
      if (status !== 200) faults.push(String(status));
    }
  });
  process.kill(started.pid, "SIGHUP");
  await until("new workers", () => workers().length === 2 && workers().every((pid) => !before.includes(pid)));
  running = false;
  await Promise.all(load);
  expect(faults).toEqual([]);
}, 60_000);

/** The first line of the answer to a client that sends 4 MiB, whatever is answered meanwhile. */
async function answerToLarge(port: number, form: "chunked" | "of that length"): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const socket = connectTls({ host: "127.0.0.1", port, ...tlsWith(alice) });
  let answer = "";
  socket.on("data", (bytes) => {
    answer += bytes;
  });
  socket.on("close", resolve).on("error", () => {});
  const size = form === "chunked" ? "Transfer-Encoding: chunked" : "Content-Length: 4194304";
  socket.write(
    `POST /incidents/ HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n${size}\r\n\r\n`,
  );
  const part = "a".repeat(0x10000);
  for (let at = 0; at < 64; at += 1) socket.write(form === "chunked" ? `10000\r\n${part}\r\n` : part);
  await promise;
  return answer.split("\r\n", 1)[0]!;
}

test.each(["chunked", "of that length"] as const)(
  "a body that is too large, %s, is always answered before the connection ends",
  async (form) => {
    await using started = await start(root.certificate);
    const answers = await Promise.all(Array.from({ length: 10 }, () => answerToLarge(started.mtls, form)));
    expect(new Set(answers)).toEqual(new Set(["HTTP/1.1 413 Payload Too Large"]));
  },
);

test("limits and logs are those of the other port", async () => {
  await using started = await start(root.certificate);
  const statusOf = async (port: number, path: string) => {
    const init = { headers: { "x-forwarded-for": "192.0.2.1" } };
    const sent = port === started.mtls ? ask(port, alice, path, init) : started.fetch(path, init);
    return (await sent).status;
  };
  // Each for another user, since there is a limit for each user, too.
  let user = 0;
  /** Challenges until the limit. */
  const granted = async (port: number) => {
    for (let count = 0; count < 200; count += 1) {
      const status = await statusOf(port, `/noauth/v1/challenge_generator/user${++user}@example.com`);
      if (status === 429) return count;
      expect(status).toBe(200);
    }
    throw new Error("there is no limit");
  };
  const there = await granted(started.mtls);
  expect(there).toBeGreaterThan(4);
  // A few are granted again after the first refusal, as time passes.
  expect(await granted(started.port)).toBeLessThan(there / 2);

  expect(await statusOf(started.mtls, "/whoami")).toBe(200);
  await started.says('"route":"/whoami"');
  const line = started
    .said()
    .split("\n")
    .find((each) => each.includes('"route":"/whoami"'))!;
  expect(JSON.parse(line)).toMatchObject({ level: 30, method: "GET", status: 200, msg: "request" });
});

test("a host name that is too short for paths to be found is refused, on both ports", async () => {
  const files = ["--ssl-keyfile", own.key, "--ssl-certfile", own.certificate];
  await using started = await start(root.certificate, files);
  for (const [port, host, status] of [
    [started.port, "ab", 400],
    [started.port, "abc", 404],
    [started.mtls, "abc", 400],
    [started.mtls, "abcd", 404],
    [started.mtls, "a:8443", 404],
  ] as const) {
    const answer = await ask(port, undefined, "/x/healthcheck", { headers: { host } });
    expect({ host, status: answer.status }).toEqual({ host, status });
  }
});

test("a failed handshake is logged, and a connection without one is not", async () => {
  await using started = await start(root.certificate);
  const silent = connect({ host: "127.0.0.1", port: started.mtls });
  await new Promise((resolve) => silent.once("connect", resolve));
  silent.destroy();
  const plain = connect({ host: "127.0.0.1", port: started.mtls });
  plain.on("error", () => {});
  plain.write("GET / HTTP/1.1\r\n\r\n");
  await started.says("TLS handshake failed on the mTLS port");
  const failures = started.said().match(/TLS handshake failed/g);
  expect(failures).toHaveLength(1);
  plain.destroy();
});

test("unusable authorities are named before anything listens", async () => {
  const leaf = alice.certificate;
  await expect(start(leaf)).rejects.toThrow(
    `SVC_MTLS_CA_CERTS: ${leaf} contains a certificate that is not a CA certificate`,
  );
});
