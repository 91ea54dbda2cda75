import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { document } from "../../drizzle/schema/index.ts";
import { statusesOf } from "../../tests/support/http/raw_http.ts";
import {
  environmentOf,
  signInToken,
  startTestServer,
  type TestServer,
} from "../../tests/support/http/server.ts";
import { startServing } from "../../tests/support/http/serving.ts";

// Bun answers 400, or nothing, if bytes follow a request whose answer is pending. A request that got no answer has
// changed nothing; the exception is TLS with another whole request, where Bun reports the end only when the client closes.

const folder = mkdtempSync(join(tmpdir(), "svc-last-bytes-"));
let server: TestServer;
let authorization: string;
beforeAll(async () => {
  server = await startTestServer();
  // The other processes use the machine's clock.
  server.clock.advance((Date.now() - server.clock.now().getTime()) / 1000);
  authorization = `Bearer ${await signInToken(server)}`;
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

/** Sends the text in one packet, and returns the statuses of the answers. */
async function statuses(socket: Socket, text: string): Promise<number[]> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let answer = "";
  socket.on("data", (chunk) => {
    answer += chunk.toString("latin1");
    // The first answer ends the exchange.
    if (answer.includes("\r\n\r\n")) socket.destroy();
  });
  socket.on("error", () => {}).on("close", () => resolve());
  socket.write(text);
  await promise;
  return statusesOf(answer);
}

const post = (name: string) => {
  const body = JSON.stringify({ resource_type: "notes", name });
  const headers = `Host: localhost\r\nAuthorization: ${authorization}\r\nContent-Type: application/json\r\n`;
  return `POST /documents/ HTTP/1.1\r\n${headers}Content-Length: ${body.length}\r\n\r\n${body}`;
};
const get = "GET /healthcheck HTTP/1.1\r\nHost: localhost\r\n\r\n";

const following: Record<string, string> = {
  nothing: "",
  "an empty line": "\r\n",
  "another request": get,
  "the beginning of another request": "GET /health",
  "something else": "x y z\r\n\r\n",
};

async function check(open: () => Socket, cases = following): Promise<void> {
  for (const [kind, more] of Object.entries(cases)) {
    const name = crypto.randomUUID();
    const answered = await statuses(open(), post(name) + more);
    // One that runs without its connection would end before this one.
    expect(await statuses(open(), post("another"))).toEqual([201]);
    const written = (await server.db.select().from(document)).filter((one) => one.name === name);
    expect([kind, written.length]).toEqual([kind, answered[0] === 201 ? 1 : 0]);
  }
}

test("a write is answered, or changes nothing, whatever follows it in the packet", async () => {
  const port = Number(new URL(server.url).port);
  await check(() => connect({ port, host: "127.0.0.1" }));
  expect(await statuses(connect({ port, host: "127.0.0.1" }), post("plain"))).toEqual([201]);
});

test("also over TLS, and on a Unix socket", async () => {
  const [key, certificate, uds] = ["key.pem", "cert.pem", "svc.sock"].map((name) => join(folder, name));
  const place = ["-keyout", key!, "-out", certificate!, "-subj", "/CN=localhost", "-days", "2"];
  Bun.spawnSync(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", ...place]);
  const run = { app: "server/main:app", env: environmentOf(server) };
  await using tls = await startServing(folder, ["--ssl-keyfile", key!, "--ssl-certfile", certificate!], run);
  const { "another request": _, ...overTls } = following;
  await check(() => connectTls({ port: tls.port, host: "127.0.0.1", rejectUnauthorized: false }), overTls);
  await using _local = await startServing(folder, ["--uds", uds!], { ...run, port: false });
  await check(() => connect({ path: uds! }));
}, 120_000);
