import { afterAll, describe, expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "../../../platform/free_port.ts";
import { svc } from "../../../tests/support/cli/process.ts";
import { Load } from "../../../tests/support/http/load.ts";
import { askFrom, clientPorts, listeningPorts } from "../../../tests/support/http/loopback.ts";
import { exchange } from "../../../tests/support/http/raw_http.ts";
import {
  appFolder,
  messagesIn,
  startOnDescriptor,
  startServing,
} from "../../../tests/support/http/serving.ts";
import { until } from "../../../tests/support/process/until.ts";

const folder = appFolder();
afterAll(() => folder[Symbol.dispose]());
const start = (args: readonly string[] = [], options = {}) => startServing(folder.path, args, options);

test("--root-path: a WebSocket of the application opens below it", async () => {
  await using server = await start(["--root-path", "/svc"], { app: "with_elysia:app" });
  const socket = new WebSocket(`ws://127.0.0.1:${server.port}/svc/echo`);
  const heard = await new Promise((resolve) => {
    socket.onopen = () => socket.send("hello");
    socket.onmessage = ({ data }) => resolve(data);
    socket.onclose = ({ code }) => resolve(code);
  });
  socket.close();
  expect(heard).toBe("hello");
});

describe.each(["mine:plain", "with_elysia:app"])("%s with", (app) => {
  test("--root-path: the prefix is stripped, and the client's address is kept", async () => {
    await using server = await start(["--root-path", "/svc/"], { app });
    const paths = ["/svc/a/b", "/svc", "/a", "/svcx"];
    const seen = await Promise.all(paths.map((path) => server.ask(path)));
    expect(seen.map(({ pathname }) => pathname)).toEqual(["/a/b", "/", "/a", "/svcx"]);
    expect(seen[0]!.address).toBe("127.0.0.1");
    const old = await exchange(server.port, "GET /svc/a HTTP/1.0\r\n\r\n");
    expect(old).toEndWith(JSON.stringify({ pid: server.pid, pathname: "/a", address: "127.0.0.1" }));
  });

  test("--header: is added to every answer, including redirects, and can be repeated", async () => {
    const given = ["x-a: 1", "x-b:two words", "link: </a>", "link: </b>"].flatMap((one) => ["--header", one]);
    await using server = await start(given, { app });
    for (const path of ["/", "/elsewhere"]) {
      const { headers } = await server.fetch(path);
      expect(["x-a", "x-b", "link"].map((name) => headers.get(name))).toEqual([
        "1",
        "two words",
        "</a>, </b>",
      ]);
    }
    expect((await server.fetch("/elsewhere")).headers.get("location")).toBe("http://127.0.0.1/other");
  });

  test("--uds: creates a socket with the mode, for clients of this machine; refuses a second server", async () => {
    const path = join(folder.path, "svc.sock");
    await using server = await start(["--uds", path, "--uds-mode", "600"], { app, port: false });
    expect((statSync(path).mode & 0o777).toString(8)).toBe("600");
    const answer = await fetch("http://localhost/a", { unix: path });
    expect(await answer.json()).toEqual({ pid: server.pid, pathname: "/a", address: "127.0.0.1" });
    const second = await svc(["server", "start", app, "--uds", path], {}, folder.path);
    expect(second.stderr).toBe(`svc: --uds: a server runs on ${path}\n`);
    await server.end("SIGKILL");
    expect(existsSync(path)).toBe(true);
    await using next = await start(["--uds", path], { app, port: false });
    expect((statSync(path).mode & 0o777).toString(8)).toBe("660");
    expect((await fetch("http://localhost/", { unix: path })).status).toBe(200);
    expect((await next.end()).code).toBe(0);
    expect(existsSync(path)).toBe(false);
  });

  test("--fd: uses the descriptor's port, and the client's address", async () => {
    await using server = await startOnDescriptor(folder.path, ["--fd", "3"], { app });
    expect(messagesIn(server.said)).toEqual(["listening on descriptor 3"]);
    const ask = (init: RequestInit) => fetch(`http://127.0.0.1:${server.port}/a`, init);
    const answer = await ask({ headers: { connection: "close" } });
    expect(await answer.json()).toEqual({ pid: server.pid, pathname: "/a", address: "127.0.0.1" });
    const posted = await ask({ method: "POST", body: "a".repeat(500_000) });
    expect(await posted.json()).toMatchObject({ length: 500_000 });
    process.kill(server.pid, "SIGTERM");
    expect(await server.exited).toBe(0);
  });
});

test("--fd: the port inside refuses connections that are not forwarded", async () => {
  await using server = await startOnDescriptor(folder.path, ["--fd", "3"]);
  const [inside = 0, ...more] = (await listeningPorts(server.pid)).filter((port) => port !== server.port);
  expect(more).toEqual([]);
  const client = new Load({ port: server.port, clients: 1, keepAlive: "all", pause: 100 });
  await until("an answer", () => client.answered > 0);
  const ports = await clientPorts(inside);
  expect(ports.length).toBeGreaterThan(0);
  const refused = "HTTP/1.1 403 Forbidden";
  for (const port of ports) expect(await askFrom("127.0.0.2", port, inside)).toBe(refused);
  expect(await askFrom("127.0.0.1", 0, inside)).toBe(refused);
  await client.end();
  expect(client.failures).toEqual([]);
});

test("--fd: a refusal reaches a client that is still sending", async () => {
  writeFileSync(
    join(folder.path, "refusing.ts"),
    'export const app = { fetch: () => new Response("no", { status: 413, headers: { connection: "close" } }) };',
  );
  await using server = await startOnDescriptor(folder.path, ["--fd", "3"], { app: "refusing:app" });
  const body = Buffer.alloc(16 * 1024 * 1024);
  const lengths = [`Content-Length: ${body.length}\r\n\r\n`, `Transfer-Encoding: chunked\r\n\r\n1000000\r\n`];
  for (const length of [...lengths, ...lengths]) {
    const head = Buffer.from(`POST / HTTP/1.1\r\nHost: a\r\n${length}`);
    expect(await exchange(server.port, Buffer.concat([head, body]))).toStartWith("HTTP/1.1 413 ");
  }
});

test("LISTEN_FDS: the socket of systemd is served", async () => {
  const variables = "LISTEN_FDS=1 LISTEN_PID=$$";
  await using server = await startOnDescriptor(folder.path, [], { variables });
  expect(messagesIn(server.said)).toEqual(["listening on descriptor 3"]);
  expect((await fetch(`http://127.0.0.1:${server.port}/`)).status).toBe(200);
});

test.each([
  ["LISTEN_FDS=2 LISTEN_PID=$$", "", "svc: LISTEN_FDS is 2: exactly one socket is supported"],
  ["LISTEN_FDS=1 LISTEN_PID=$$", "--port", "listening on http://127.0.0.1:"],
  // No socket was passed, according to sd_listen_fds(3).
  ["LISTEN_FDS=0 LISTEN_PID=$$", "", 'svc: Module mine has no "missing"'],
  ["LISTEN_PID=$$", "", 'svc: Module mine has no "missing"'],
  // Meant for our parent process.
  ["LISTEN_FDS=2 LISTEN_PID=$PPID", "", 'svc: Module mine has no "missing"'],
])("%s with %p: %s", async (variables, option, words) => {
  const port = String(await freePort());
  // Without a port, it must not start to listen on one.
  const [args, app] = option ? [[option, port], "mine:plain"] : [[], "mine:missing"];
  await using server = await startOnDescriptor(folder.path, args, { app, variables });
  expect(messagesIn(server.said)[0]).toStartWith(words);
});

test("--ssl-*: serves HTTPS, only to clients with a certificate of the authorities", async () => {
  const inFolder = (name: string) => join(folder.path, name);
  const openssl = (...args: string[]) => expect(spawnSync("openssl", args).status).toBe(0);
  const [key, cert] = [inFolder("key.pem"), inFolder("cert.pem")];
  const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"];
  openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, ...subject);
  const tls = { ca: readFileSync(cert, "utf8") };
  const args = ["--ssl-keyfile", key, "--ssl-certfile", cert];
  {
    await using server = await start(args);
    expect((await fetch(`https://127.0.0.1:${server.port}/`, { tls })).status).toBe(200);
    expect((await server.end()).stderr).toContain("listening on https://127.0.0.1:");
  }
  await using closed = await start([...args, "--ssl-ca-certs", cert]);
  const ask = (more: object) => fetch(`https://127.0.0.1:${closed.port}/`, { tls: { ...tls, ...more } });
  await expect(ask({})).rejects.toThrow();
  const own = { key: readFileSync(key, "utf8"), cert: tls.ca };
  expect((await ask(own)).status).toBe(200);
});

test("--env-file overrides .env, and the environment overrides both", async () => {
  writeFileSync(join(folder.path, "more.env"), "A=file\nB=file\n");
  await using server = await start(["--env-file", "more.env"], { env: { B: "environment" } });
  const variable = async (name: string) => await (await server.fetch(`/variable?name=${name}`)).text();
  expect([await variable("A"), await variable("B")]).toEqual(["file", "environment"]);
});

test("options are passed to the application as variables", async () => {
  const args = [
    "--proxy-headers",
    "--forwarded-allow-ips",
    "10.0.0.1",
    "--log-level",
    "warn",
    "--no-access-log",
  ];
  await using server = await start(args);
  const variable = async (name: string) => await (await server.fetch(`/variable?name=SVC_${name}`)).text();
  const names = ["PROXY_HEADERS", "FORWARDED_ALLOW_IPS", "LOG_LEVEL", "ACCESS_LOG", "PUBLIC_URL"];
  expect(await Promise.all(names.map(variable))).toEqual([
    "true",
    "10.0.0.1",
    "warn",
    "false",
    `http://127.0.0.1:${server.port}`,
  ]);
});

test("--timeout-keep-alive: closes idle connections", async () => {
  await using server = await start(["--timeout-keep-alive", "1"]);
  const closed = Promise.withResolvers<void>();
  const socket = await Bun.connect({
    hostname: "127.0.0.1",
    port: server.port,
    socket: { data() {}, close: () => closed.resolve() },
  });
  socket.write("GET /variable?name=A HTTP/1.1\r\nHost: a\r\n\r\n");
  await closed.promise;
});

test("--timeout-graceful-shutdown: current requests finish, or are cut off after it", async () => {
  await using patient = await start();
  const finished = patient.fetch("/slow?ms=700");
  await patient.says("slow for 700");
  const end = patient.end();
  expect((await finished).status).toBe(200);
  expect((await end).code).toBe(0);
  await using hasty = await start(["--timeout-graceful-shutdown", "0"]);
  const cut = hasty.fetch("/slow?ms=20000").catch((error: Error) => error);
  await hasty.says("slow for 20000");
  expect((await hasty.end()).code).toBe(0);
  expect(await cut).toBeInstanceOf(Error);
});

test("warns about an unknown variable in an --env-file", async () => {
  writeFileSync(join(folder.path, "odd.env"), "SVC_DOMAINE=example.com\nSVC_DOMAIN=example.com\n");
  const args = ["server", "start", "server/main:app", "--env-file", "odd.env"];
  const { stderr } = await svc(args, {}, folder.path);
  expect(stderr).toStartWith(
    "svc: unknown variable: SVC_DOMAINE. Did you mean SVC_DOMAIN?\nsvc: SVC_DATABASE_URL is not set",
  );
});

test("a certificate error is reported once with any number of workers; an expired one is a warning", async () => {
  const openssl = (...args: string[]) =>
    expect(Bun.spawnSync(["openssl", ...args], { cwd: folder.path }).exitCode).toBe(0);
  const make = (name: string, days: number) => {
    const key = `${name}.key`;
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-keyout", key, "-out", "csr");
    openssl("x509", "-req", "-in", "csr", "-signkey", key, "-days", String(days), "-out", `${name}.pem`);
  };
  make("good", 2);
  make("old", -1);
  const workers = ["--workers", "2", "--ssl-certfile", "old.pem", "--ssl-keyfile"];
  const args = ["server", "start", "mine:plain", "--port", "0", ...workers, "good.key"];
  expect(await svc(args, { SVC_PUBLIC_URL: "http://a" }, folder.path)).toEqual({
    code: 1,
    stdout: "",
    stderr: "svc: --ssl-keyfile: good.key is not the key of the first certificate in old.pem\n",
  });
  await using server = await start([...workers, "old.key"]);
  expect(messagesIn(server.said().replace(/\S+Z:/, "...Z:"))).toEqual([
    "--ssl-certfile: old.pem has expired at ...Z: clients will refuse it",
    `listening on https://127.0.0.1:${server.port} with 2 workers`,
  ]);
});
