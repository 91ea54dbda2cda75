import { afterAll, beforeAll, expect, test } from "bun:test";
import { connect, createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { freePort } from "../../platform/free_port.ts";
import { secondsUntilAsked } from "../../tests/support/http/sockets.ts";
import { listen } from "../../tests/support/listen.ts";
import { until } from "../../tests/support/process/until.ts";
import { addressesOf, forward, Servers } from "./forward.ts";

/** Tests of forwarding. tests/containers tests the choice among several real servers. */

let upstream: Server;
let upstreamPort: number;
const forwards: Bun.Subprocess[] = [];

beforeAll(async () => {
  // Echoes its input once all of it has arrived.
  upstream = createServer({ allowHalfOpen: true }, (socket) => {
    const chunks: Buffer[] = [];
    socket.on("data", (chunk: Buffer) => chunks.push(chunk));
    socket.on("end", () => socket.end(Buffer.concat(chunks)));
    socket.on("error", () => socket.destroy());
  });
  upstreamPort = await freePort();
  await listen(upstream, { port: upstreamPort });
});
afterAll(() => {
  upstream.close();
  for (const forward of forwards) forward.kill();
});

async function start(to: string, ...path: string[]): Promise<number> {
  const port = await freePort();
  const args = [join(import.meta.dir, "forward.ts"), `127.0.0.1:${port}`, to, ...path];
  forwards.push(Bun.spawn([process.execPath, ...args], { stdio: ["ignore", "inherit", "inherit"] }));
  await until("it to listen", async () => {
    const socket = await open(port).catch(() => undefined);
    socket?.destroy();
    return socket !== undefined;
  });
  return port;
}

function open(port: number): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true }, () => resolve(socket));
  socket.once("error", reject);
  return promise;
}

/** Sends the text, closes the sending side, and reads the answer. */
async function exchange(port: number, bytes: Buffer): Promise<Buffer> {
  return answerTo(await open(port), bytes);
}

async function answerTo(socket: Socket, bytes: string | Buffer): Promise<Buffer> {
  const chunks: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => chunks.push(chunk));
  const { promise, resolve } = Promise.withResolvers<void>();
  socket.on("error", () => resolve()).on("close", () => resolve());
  socket.end(bytes);
  await promise;
  return Buffer.concat(chunks);
}

test("the answer arrives after the sender has ended, and not before", async () => {
  const port = await start(`localhost:${upstreamPort}`);
  for (let n = 0; n < 6; n++) {
    const bytes = Buffer.from(`hello ${n}`);
    expect((await exchange(port, bytes)).equals(bytes)).toBe(true);
  }
});

test("concurrent transfers larger than a buffer arrive unchanged", async () => {
  const port = await start(`localhost:${upstreamPort}`);
  const all = Array.from({ length: 20 }, (_, n) => Buffer.alloc(1_000_000, n));
  const answers = await Promise.all(all.map((bytes) => exchange(port, bytes)));
  for (const [n, answer] of answers.entries()) expect(answer.equals(all[n]!)).toBe(true);
});

test("the connection is closed if nobody listens or the name does not exist", async () => {
  const ports = [await start(`localhost:${await freePort()}`), await start("nobody.invalid:80")];
  const answers = await Promise.all(ports.map((port) => exchange(port, Buffer.from("hello"))));
  expect(answers).toEqual([Buffer.alloc(0), Buffer.alloc(0)]);
});

test("waits for a server that starts to listen a moment later", async () => {
  const later = await freePort();
  const port = await start(`localhost:${later}`);
  const answer = exchange(port, Buffer.from("hello"));
  await Bun.sleep(300);
  const server = createServer({ allowHalfOpen: true }, (socket) => socket.pipe(socket));
  server.listen(later, "127.0.0.1");
  expect(await answer).toEqual(Buffer.from("hello"));
  server.close();
});

test("limits the connections that wait for a server; one that closes frees its place", async () => {
  const later = await freePort();
  const listener = forward(new Servers(later, () => addressesOf("localhost")), 2);
  const port = await listen(listener);
  const [first, second] = [await open(port), await open(port)];
  const answer = answerTo(second, "second");
  // Closed immediately, while the two before it still wait for seconds.
  expect(await exchange(port, Buffer.from("refused"))).toEqual(Buffer.alloc(0));
  expect([first.destroyed, second.destroyed]).toEqual([false, false]);
  first.destroy();
  const third = until("room", async () => {
    const bytes = await exchange(port, Buffer.from("third"));
    return bytes.length > 0 && bytes;
  });
  const server = createServer({ allowHalfOpen: true }, (socket) => socket.pipe(socket));
  server.listen(later, "127.0.0.1");
  expect(await answer).toEqual(Buffer.from("second"));
  expect(await third).toEqual(Buffer.from("third"));
  server.close();
  listener.close();
});

test("forwards two thousand concurrent connections without mixing them up", async () => {
  const port = await start(`localhost:${upstreamPort}`);
  const sockets: Socket[] = [];
  // The system queues some hundreds of connections; further ones would have to retry.
  while (sockets.length < 2000)
    sockets.push(...(await Promise.all(Array.from({ length: 100 }, () => open(port)))));
  const answers = await Promise.all(sockets.map((socket, n) => answerTo(socket, `client ${n}`)));
  expect(answers.filter((answer, n) => answer.toString() !== `client ${n}`)).toEqual([]);
});

test("both sides have TCP keep-alive", async () => {
  const port = await start(`localhost:${upstreamPort}`);
  const socket = await open(port);
  for (const side of [`sport = :${port}`, `dport = :${upstreamPort}`])
    await until(side, async () => (await secondsUntilAsked(side)) <= 30);
  socket.destroy();
});

test("with a path, servers are checked repeatedly for whether they are stopping", async () => {
  const paths: string[] = [];
  using server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: ({ url }) => Response.json({ status: paths.push(new URL(url).pathname) }),
  });
  await start(`localhost:${server.port}`, "/healthcheck");
  await until("the second time", () => paths.length >= 2);
  expect(new Set(paths)).toEqual(new Set(["/healthcheck"]));
});

test("exits on SIGTERM, and immediately on invalid arguments", async () => {
  await start(`localhost:${upstreamPort}`);
  const forward = forwards.at(-1)!;
  forward.kill("SIGTERM");
  expect(await forward.exited).toBe(0);
  const args = [join(import.meta.dir, "forward.ts"), "8000"];
  expect(Bun.spawnSync([process.execPath, ...args], { stderr: "ignore" }).exitCode).toBe(2);
});
