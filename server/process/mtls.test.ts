import { afterAll, expect, test } from "bun:test";
import { once } from "node:events";
import { copyFileSync } from "node:fs";
import { request } from "node:https";
import { connect } from "node:net";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { freePort } from "../../platform/free_port.ts";
import { CertificateFolder, tlsWith } from "../../tests/support/http/client_certificates.ts";
import { Load } from "../../tests/support/http/load.ts";
import { askFrom, clientPorts, listeningPorts } from "../../tests/support/http/loopback.ts";
import {
  appFolder,
  messagesIn,
  type Started,
  startOnDescriptor,
  startServing,
  useOwnServer,
} from "../../tests/support/http/serving.ts";
import { until, within } from "../../tests/support/process/until.ts";

const certificates = new CertificateFolder();
const folder = appFolder();
afterAll(() => {
  certificates[Symbol.dispose]();
  folder[Symbol.dispose]();
});
const own = useOwnServer();
const [server, other] = [certificates.server(), certificates.server()];
const client = certificates.issue();
const files = (of = server) => ["--mtls-keyfile", of.key, "--mtls-certfile", of.certificate];

async function start(
  args: readonly string[] = files(),
  app = "mine:plain",
): Promise<Started & { mtls: number }> {
  const mtls = await freePort();
  const started = await startServing(folder.path, ["--mtls-port", String(mtls), ...args], { app });
  return { ...started, mtls };
}

const get = (port: number, path = "/", init: BunFetchRequestInit = {}) =>
  fetch(`https://127.0.0.1:${port}${path}`, { tls: tlsWith(client), keepalive: false, ...init });

test.each(["with_elysia:app", "mine:plain"])(
  "%s answers on both ports, and sees the client's address",
  async (app) => {
    await using started = await start(files(), app);
    const answer = await (await get(started.mtls, "/some/path")).json();
    expect(answer).toEqual({ pid: started.pid, pathname: "/some/path", address: "127.0.0.1" });
    expect(await started.ask()).toMatchObject({ pid: started.pid });
    const body = "x".repeat(3_000_000);
    expect(await (await get(started.mtls, "/", { method: "POST", body })).json()).toMatchObject({
      length: body.length,
    });
    expect((await (await get(started.mtls, "/large")).arrayBuffer()).byteLength).toBe(32 * 1024 * 1024);
    // Without a certificate, the application decides.
    expect((await get(started.mtls, "/", { tls: tlsWith() })).status).toBe(200);
    expect(messagesIn(started.said()).slice(0, 2)).toEqual([
      `listening on http://127.0.0.1:${started.port}`,
      `listening for client certificates on https://127.0.0.1:${started.mtls}`,
    ]);
    expect((await started.end()).code).toBe(0);
  },
);

test.each(["with_elysia:app", "mine:plain"])("%s sees each client's own address", async (app) => {
  await using started = await start(files(), app);
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const options = { localAddress: "127.0.0.2", agent: false, rejectUnauthorized: false };
  request(`https://127.0.0.1:${started.mtls}/`, options, async (answer) => {
    resolve(Buffer.concat(await Array.fromAsync(answer)).toString());
  })
    .on("error", reject)
    .end();
  expect(JSON.parse(await promise)).toMatchObject({ address: "127.0.0.2" });
});

test("the port inside accepts only our own connections", async () => {
  await using started = await start();
  const answer = await fetch(`http://127.0.0.1:${await insideOf(started)}/noted?id=inside`);
  expect([answer.status, await answer.text()]).toEqual([403, ""]);
});

test("nor one with the port of a forwarded connection, from another loopback address", async () => {
  await using started = await start();
  const kept = new Load({
    port: started.mtls,
    clients: 1,
    keepAlive: "all",
    pause: 100,
    tls: tlsWith(client),
  });
  await hasSeen(kept, 1);
  const inside = await insideOf(started);
  const answers = (await clientPorts(inside)).map((port) => askFrom("127.0.0.2", port, inside));
  expect(answers.length).toBeGreaterThan(0);
  expect(await Promise.all(answers)).toEqual(answers.map(() => "HTTP/1.1 403 Forbidden"));
  await kept.end();
  expect(kept.failures).toEqual([]);
});

test("SIGHUP reloads the certificate without refusing requests", async () => {
  const [key, certificate] = [certificates.at("current.key"), certificates.at("current.pem")];
  const use = (of: typeof server) => {
    copyFileSync(of.key, key);
    copyFileSync(of.certificate, certificate);
  };
  use(server);
  await using started = await start(["--mtls-keyfile", key, "--mtls-certfile", certificate]);
  const before = await serialOf(started.mtls);
  const load = startLoad(started.mtls);
  use(other);
  process.kill(started.pid, "SIGHUP");
  await started.says("certificate reloaded");
  await load.end();
  expect(load.failures).toEqual([]);
  expect(await serialOf(started.mtls)).not.toBe(before);
});

test.each([
  ["each on a connection of its own", 3, "none"],
  ["on connections that stay open", 12, "all"],
] as const)(
  "SIGHUP under load replaces every worker, and no request %s over mTLS fails",
  async (_, clients, keepAlive) => {
    await using started = await start([...files(), "--workers", "2"]);
    const load = startLoad(started.mtls, clients, keepAlive);
    await hasSeen(load, 1);
    const before = new Set(load.pids);
    process.kill(started.pid, "SIGHUP");
    await hasSeen(load, before.size + 2);
    await load.end();
    expect(load.failures).toEqual([]);
    expect((await started.end()).code).toBe(0);
  },
  60_000,
);

const slowParts: [string, Uploaded][] = [
  ["handshakes", ["", "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"]],
  ["request heads", ["GET / HTTP/1.1\r\nHo", "st: localhost\r\nConnection: close\r\n\r\n"]],
  [
    "request bodies",
    ["POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 4\r\n\r\nab", "cd"],
  ],
];
test.each(slowParts)(
  "SIGHUP under load waits for slow %s",
  async (_, parts) => {
    await using started = await start([...files(), "--workers", "2"]);
    const load = startLoad(started.mtls);
    const slow: Promise<string>[] = [];
    const timer = setInterval(() => slow.push(slowRequest(started.mtls, parts, 600)), 50);
    await hasSeen(load, 2);
    process.kill(started.pid, "SIGHUP");
    await hasSeen(load, 4);
    clearInterval(timer);
    await load.end();
    expect(load.failures).toEqual([]);
    const answers = await Promise.all(slow);
    expect(answers.filter((answer) => answer !== "HTTP/1.1 200 OK")).toEqual([]);
  },
  60_000,
);

test("a request is finished at shutdown, and half-open handshakes do not delay it", async () => {
  await using started = await start();
  const silent = connect({ host: "127.0.0.1", port: started.mtls });
  await new Promise((resolve) => silent.once("connect", resolve));
  const slow = get(started.mtls, "/slow?ms=700");
  await started.says("slow for 700");
  const began = performance.now();
  const ended = started.end();
  expect((await slow).status).toBe(200);
  expect((await ended).code).toBe(0);
  // A handshake may take as long.
  expect(performance.now() - began).toBeLessThan(10_000);
  silent.destroy();
});

test("an answer that is being sent at shutdown arrives complete, also through an inherited descriptor", async () => {
  await using own = await start();
  await using inherited = await startOnDescriptor(folder.path, ["--fd", "3"]);
  const answers = await Promise.all([
    get(own.mtls, "/large"),
    fetch(`http://127.0.0.1:${inherited.port}/large`, { keepalive: false }),
  ]);
  for (const { pid } of [own, inherited]) process.kill(pid, "SIGTERM");
  for (const answer of answers) expect((await answer.arrayBuffer()).byteLength).toBe(32 * 1024 * 1024);
  expect([(await own.finished).code, await inherited.exited]).toEqual([0, 0]);
});

test("500 half-open handshakes are closed in time with a reason in the log, and delay nobody", async () => {
  await using ours = await own.start(["--mtls-port", String(await freePort()), ...files()]);
  const [, mtls = ""] = /certificates on https:\/\/127\.0\.0\.1:(\d+)/.exec(ours.said())!;
  const sockets = Array.from({ length: 500 }, () => connect({ host: "127.0.0.1", port: Number(mtls) }));
  let isOneClosed = false;
  const closed = sockets.map(
    (socket) =>
      new Promise<void>((resolve) =>
        socket
          .once("close", () => {
            isOneClosed = true;
            resolve();
          })
          .on("error", () => {}),
      ),
  );
  await Promise.all(sockets.map((socket) => new Promise((resolve) => socket.once("connect", resolve))));
  // A few began: a record that never ends.
  for (const socket of sockets.slice(0, 50)) socket.write(Buffer.from("1603010200010001fc0303", "hex"));
  expect((await get(Number(mtls), "/healthcheck")).status).toBe(200);
  expect(isOneClosed).toBe(false);
  await within("the others to be closed", Promise.all(closed));
  const lines = ours
    .said()
    .split("\n")
    .filter((line) => line.includes("TLS handshake failed on the mTLS port"))
    .map((line) => JSON.parse(line));
  expect(lines[0]).toMatchObject({ reason: "ERR_TLS_HANDSHAKE_TIMEOUT", address: "127.0.0.1" });
  // An attacker must not fill the log.
  expect(lines.length).toBeLessThanOrEqual(60);
});

test("beyond 1000 half-open handshakes, the oldest are closed at once", async () => {
  await using started = await start();
  let closed = 0;
  const sockets = Array.from({ length: 1100 }, () =>
    connect({ host: "127.0.0.1", port: started.mtls })
      .on("error", () => {})
      .on("close", () => {
        closed += 1;
      }),
  );
  await until("the oldest to be closed", () => closed >= 100);
  // Not all of them, as when their time is over.
  expect(closed).toBeLessThan(200);
  expect((await get(started.mtls)).status).toBe(200);
  for (const socket of sockets) socket.destroy();
});

test.each(["--uds", "--fd", "LISTEN_FDS"])("with %s, the port is on the address of --host", async (place) => {
  const mtls = await freePort("127.0.0.3");
  const args = ["--host", "127.0.0.3", "--mtls-port", String(mtls), ...files()];
  const socket = join(folder.path, "mtls.sock");
  await using started =
    place === "--uds"
      ? await startServing(folder.path, [place, socket, ...args], { port: false })
      : place === "--fd"
        ? await startOnDescriptor(folder.path, [place, "3", ...args])
        : await startOnDescriptor(folder.path, args, { variables: "LISTEN_FDS=1 LISTEN_PID=$$" });
  if ("said" in started && typeof started.said === "string")
    expect(messagesIn(started.said)[0]).toBe("listening on descriptor 3");
  const tls = tlsWith(client);
  let answer: Response | undefined;
  // The descriptor's server has only said its first word.
  await until("the port", async () => {
    answer = await fetch(`https://127.0.0.3:${mtls}/`, { tls, keepalive: false }).catch(() => undefined);
    return answer !== undefined;
  });
  expect(await answer!.json()).toMatchObject({ address: "127.0.0.1" });
  await expect(get(mtls)).rejects.toThrow("ECONNREFUSED");
});

test("SIGHUP under load replaces workers of a descriptor, and no request over mTLS fails", async () => {
  const mtls = await freePort();
  const args = ["--fd", "3", "--workers", "2", "--mtls-port", String(mtls), ...files()];
  await using started = await startOnDescriptor(folder.path, args);
  await until("the port", () =>
    get(mtls).then(
      () => true,
      () => false,
    ),
  );
  const load = startLoad(mtls);
  await hasSeen(load, 1);
  const before = new Set(load.pids);
  process.kill(started.pid, "SIGHUP");
  await hasSeen(load, before.size + 2);
  await load.end();
  expect(load.failures).toEqual([]);
}, 60_000);

test("options for all requests apply to both ports", async () => {
  const args = ["--header", "X-Served-By: one", "--root-path", "/svc"];
  await using started = await start([...files(), ...args]);
  for (const answer of [await get(started.mtls, "/svc/path"), await started.fetch("/svc/path")]) {
    expect(answer.headers.get("x-served-by")).toBe("one");
    expect(await answer.json()).toMatchObject({ pathname: "/path", address: "127.0.0.1" });
  }
});

test.each(["", "/svc"])("WebSockets work on both ports, with the root path %p", async (root) => {
  await using started = await start([...files(), ...(root ? ["--root-path", root] : [])], "with_elysia:app");
  const options = { tls: tlsWith(client) } as unknown as string[];
  for (const url of [`ws://127.0.0.1:${started.port}`, `wss://127.0.0.1:${started.mtls}`]) {
    const socket = new WebSocket(`${url}${root}/echo`, options);
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    socket.onopen = () => socket.send("hello");
    socket.onmessage = ({ data }) => resolve(data);
    socket.onclose = ({ code, reason }) => reject(new Error(`${url}: ${code} ${reason}`));
    expect(await promise).toBe("hello");
    socket.onclose = null;
    socket.close();
  }
  // Not a handshake of a WebSocket.
  const upgrade: Record<string, string> = { upgrade: "h2c", connection: "upgrade" };
  for (const headers of [{}, upgrade])
    expect((await get(started.mtls, `${root}/other`, { headers })).status).toBe(200);
});

/**
 * The kernel chooses the worker of a connection: a few that stay open may all be with one worker. The pause leaves new
 * workers some processor time to start.
 */
function startLoad(port: number, clients = 6, keepAlive: "none" | "half" | "all" = "half"): Load {
  return new Load({ port, clients, keepAlive, pause: 4, tls: tlsWith(client) });
}

async function hasSeen({ pids }: Load, processes: number): Promise<void> {
  while (pids.size < processes) await Bun.sleep(20);
}

/** A request in two parts. */
type Uploaded = readonly [string, string];

/** The first line of the answer to a client that pauses before its handshake, and before the end of its request. */
async function slowRequest(port: number, [first, last]: Uploaded, milliseconds: number): Promise<string> {
  const signal = AbortSignal.timeout(10_000);
  try {
    const socket = connect({ host: "127.0.0.1", port });
    await once(socket, "connect", { signal });
    await Bun.sleep(milliseconds);
    const secure = connectTls({ socket, ...tlsWith(client) });
    await once(secure, "secureConnect", { signal });
    if (first) secure.write(first);
    await Bun.sleep(milliseconds);
    secure.write(last);
    const [data] = (await once(secure, "data", { signal })) as [Buffer];
    secure.destroy();
    return data.toString().split("\r\n", 1)[0]!;
  } catch (error) {
    return String(error);
  }
}

async function serialOf(port: number): Promise<string> {
  const socket = connectTls({ host: "127.0.0.1", port, rejectUnauthorized: false });
  await new Promise((resolve) => socket.once("secureConnect", resolve));
  const { serialNumber } = socket.getPeerCertificate();
  socket.destroy();
  return serialNumber;
}

/** The port of this process to which it forwards decrypted bytes. */
async function insideOf({ pid, port, mtls }: Started & { mtls: number }): Promise<number> {
  const ports = (await listeningPorts(pid)).filter((one) => one !== port && one !== mtls);
  expect(ports).toHaveLength(1);
  return ports[0]!;
}
