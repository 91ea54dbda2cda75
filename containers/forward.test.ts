import { afterAll, beforeAll, expect, test } from "bun:test";
import { connect, createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { freePort } from "../tests/support/e2e_stack.ts";
import { until } from "../tests/support/e2e_until.ts";

/** What it passes on. That it chooses among several servers is tried with real ones, in tests/containers. */

let upstream: Server;
let upstreamPort: number;
const forwards: Bun.Subprocess[] = [];

beforeAll(async () => {
  // Answers with what it was sent, once all of it is there.
  upstream = createServer({ allowHalfOpen: true }, (socket) => {
    const chunks: Buffer[] = [];
    socket.on("data", (chunk: Buffer) => chunks.push(chunk));
    socket.on("end", () => socket.end(Buffer.concat(chunks)));
    socket.on("error", () => socket.destroy());
  });
  upstreamPort = await freePort();
  await new Promise<void>((settle) => upstream.listen(upstreamPort, "127.0.0.1", settle));
});
afterAll(() => {
  upstream.close();
  for (const forward of forwards) forward.kill();
});

async function start(to: string): Promise<number> {
  const port = await freePort();
  const args = [join(import.meta.dir, "forward.ts"), `127.0.0.1:${port}`, to];
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

/** Sends it, says that this was all, and reads the answer. */
async function exchange(port: number, bytes: Buffer): Promise<Buffer> {
  const socket = await open(port);
  const chunks: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => chunks.push(chunk));
  const { promise, resolve } = Promise.withResolvers<void>();
  socket.on("error", () => resolve()).on("close", () => resolve());
  socket.end(bytes);
  await promise;
  return Buffer.concat(chunks);
}

test("what is sent comes back, when the sender has ended and not before", async () => {
  const port = await start(`localhost:${upstreamPort}`);
  for (let n = 0; n < 6; n++) {
    const bytes = Buffer.from(`hello ${n}`);
    expect((await exchange(port, bytes)).equals(bytes)).toBe(true);
  }
});

test("many at once, with more than a buffer holds, arrive as they were sent", async () => {
  const port = await start(`localhost:${upstreamPort}`);
  const all = Array.from({ length: 20 }, (_, n) => Buffer.alloc(1_000_000, n));
  const answers = await Promise.all(all.map((bytes) => exchange(port, bytes)));
  for (const [n, answer] of answers.entries()) expect(answer.equals(all[n]!)).toBe(true);
});

test("where nobody listens, or there is no such name, the connection is closed in the end", async () => {
  const ports = [await start(`localhost:${await freePort()}`), await start("nobody.invalid:80")];
  const answers = await Promise.all(ports.map((port) => exchange(port, Buffer.from("hello"))));
  expect(answers).toEqual([Buffer.alloc(0), Buffer.alloc(0)]);
});

test("one who begins to listen a moment later is waited for", async () => {
  const later = await freePort();
  const port = await start(`localhost:${later}`);
  const answer = exchange(port, Buffer.from("hello"));
  await Bun.sleep(300);
  const server = createServer({ allowHalfOpen: true }, (socket) => socket.pipe(socket));
  server.listen(later, "127.0.0.1");
  expect(await answer).toEqual(Buffer.from("hello"));
  server.close();
});

test("SIGTERM ends it, and what it does not understand does so at once", async () => {
  await start(`localhost:${upstreamPort}`);
  const forward = forwards.at(-1)!;
  forward.kill("SIGTERM");
  expect(await forward.exited).toBe(0);
  const args = [join(import.meta.dir, "forward.ts"), "8000"];
  expect(Bun.spawnSync([process.execPath, ...args], { stderr: "ignore" }).exitCode).toBe(2);
});
