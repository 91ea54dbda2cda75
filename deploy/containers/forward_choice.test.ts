import { afterEach, beforeEach, expect, spyOn, test } from "bun:test";
import { connect, createServer, type Server, type Socket } from "node:net";
import { freePort } from "../../platform/free_port.ts";
import { listen } from "../../tests/support/listen.ts";
import { until } from "../../tests/support/process/until.ts";
import { forward, isRepeatable, Servers } from "./forward.ts";

/** Which server gets a connection, and what becomes of it when that server fails. */

/** A server that reports `health`, and answers other requests with its address if it is not `holding` them. */
class Fake {
  health = "ok";
  isHolding = false;
  /** The first lines of the requests. */
  readonly requests: string[] = [];
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;

  constructor(readonly address: string) {
    this.#server = createServer((socket) => {
      this.#sockets.add(socket);
      socket.on("error", () => socket.destroy()).on("close", () => this.#sockets.delete(socket));
      socket.on("data", (chunk: Buffer) => this.#answer(socket, chunk.toString().split("\r\n", 1)[0]!));
    });
  }

  #answer(socket: Socket, line: string): void {
    if (line.startsWith("GET /health")) {
      if (this.health === "frozen") return;
      const body = JSON.stringify({ status: this.health });
      const status = this.health === "ok" ? 200 : 503;
      socket.end(
        `HTTP/1.1 ${status} x\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`,
      );
      return;
    }
    this.requests.push(line);
    if (!this.isHolding) this.release(socket);
  }

  /** Answers the requests that it holds. */
  release(...sockets: Socket[]): void {
    for (const socket of sockets.length > 0 ? sockets : this.#sockets) socket.write(this.address);
  }

  listen = (port: number) => listen(this.#server, { port, host: this.address });
  /** Its open connections stay. */
  refuse = () => void this.#server.close();
  cut = () => {
    for (const socket of this.#sockets) socket.destroy();
  };
  get connections(): number {
    return this.#sockets.size;
  }
}

let fakes: [Fake, Fake, Fake];
let servers: Servers;
let listener: Server;
let port: number;
const spies: Disposable[] = [];
beforeEach(async () => {
  spies.push(spyOn(console, "error").mockImplementation(() => {}));
  fakes = [new Fake("127.0.0.1"), new Fake("127.0.0.2"), new Fake("127.0.0.3")];
  const upstreamPort = await freePort();
  for (const fake of fakes) await fake.listen(upstreamPort);
  servers = new Servers(upstreamPort, async () => fakes.map(({ address }) => address), "/health", 1000);
  listener = forward(servers);
  port = await listen(listener);
  await servers.check();
});
afterEach(() => {
  listener.close();
  for (const fake of fakes) {
    fake.refuse();
    fake.cut();
  }
  for (const spy of spies.splice(0)) spy[Symbol.dispose]();
});

class Client {
  received = "";
  isClosed = false;
  readonly #socket = connect({ port, host: "127.0.0.1" });
  constructor(request: string) {
    this.#socket.on("data", (chunk) => {
      this.received += chunk.toString();
    });
    this.#socket.on("error", () => {}).on("close", () => (this.isClosed = true));
    this.send(request);
  }
  send = (request: string) => void this.#socket.write(request);
  end = () => void this.#socket.destroy();
  answer = () => until("an answer", () => this.received !== "" && this.received);
  closed = () => until("the connection to be closed", () => this.isClosed);
}

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: svc\r\n\r\n`;
const post = "POST /notes HTTP/1.1\r\nHost: svc\r\nContent-Length: 2\r\n\r\n{}";

/** Opens connections until this server has one that holds the request. */
async function heldBy(fake: Fake, request: string): Promise<Client> {
  fake.isHolding = true;
  for (;;) {
    const before = fake.requests.length;
    const client = new Client(request);
    await until("the request to arrive", () => client.received || fake.requests.length > before);
    if (fake.requests.length > before) return client;
    client.end();
  }
}

/** How many requests that begin like this have arrived. */
const count = (begin: string) =>
  fakes.flatMap(({ requests }) => requests.filter((line) => line.startsWith(begin))).length;

/** On a busy machine, the other servers may also be late. */
const checkedUntil = <T>(ask: () => T) =>
  until("the result of a check", async () => {
    await servers.check();
    return ask() || undefined;
  });

/** The servers that get the next six connections. */
async function chosen(): Promise<string[]> {
  const answers: string[] = [];
  for (let n = 0; n < 6; n++) {
    const client = new Client(get("/"));
    answers.push(await client.answer());
    client.end();
  }
  return [...new Set(answers)].sort();
}

test("only ready servers are used, then stopping ones, and if there is neither, all", async () => {
  const use = async (...healths: string[]) => {
    for (const [n, health] of healths.entries()) fakes[n]!.health = health;
    await servers.check();
    return (await chosen()).map((address) => address.at(-1)).join("");
  };
  expect(await use("ok", "ok", "ok")).toBe("123");
  expect(await use("ok", "unavailable", "ok")).toBe("13");
  expect(await use("leaving", "ok", "unavailable")).toBe("2");
  expect(await use("leaving", "unavailable", "unavailable")).toBe("1");
  expect(await use("unavailable", "unavailable", "unavailable")).toBe("123");
  expect(await use("ok", "unavailable", "ok")).toBe("13");
});

test("a server that refuses connections is skipped, also before its next check", async () => {
  fakes[1].refuse();
  expect(await chosen()).toEqual(["127.0.0.1", "127.0.0.3"]);
  await servers.check();
  expect(await chosen()).toEqual(["127.0.0.1", "127.0.0.3"]);
});

test.each([
  ["is not ready any more", "unavailable"],
  ["answers no check", "frozen"],
])("a GET that waits for a server that %s is answered by another one", async (_, health) => {
  const client = await heldBy(fakes[0], get("/poll"));
  fakes[0].health = health;
  expect(await checkedUntil(() => client.received)).toMatch(/^127\.0\.0\.[23]$/);
});

test("a POST is never sent twice: it waits while its server answers checks, and is then closed", async () => {
  const [client, other] = [await heldBy(fakes[0], post), await heldBy(fakes[1], post)];
  const sent = count("POST");
  fakes[0].health = "unavailable";
  fakes[1].health = "frozen";
  await servers.check();
  fakes[0].release();
  expect(await client.answer()).toBe(fakes[0].address);
  expect([other.isClosed, other.received]).toEqual([false, ""]);
  await checkedUntil(() => other.isClosed);
  expect(count("POST")).toBe(sent);
});

test("a server that has stopped listening keeps its requests, which it finishes", async () => {
  const clients = [await heldBy(fakes[0], get("/poll")), await heldBy(fakes[0], post)];
  fakes[0].health = "leaving";
  await servers.check();
  fakes[0].refuse();
  for (let n = 0; n < 3; n++) await servers.check();
  fakes[0].release();
  for (const client of clients) expect(await client.answer()).toBe(fakes[0].address);
});

test("idle connections and streams of a server that is not ready are closed, if another one is ready", async () => {
  const client = await heldBy(fakes[0], get("/stream"));
  fakes[0].release();
  await client.answer();
  // Its own check comes last: until a server is checked, its last answer counts.
  for (const fake of fakes.slice(1)) fake.health = "unavailable";
  await servers.check();
  fakes[0].health = "unavailable";
  await servers.check();
  expect(client.isClosed).toBe(false);
  fakes[1].health = "ok";
  await checkedUntil(() => client.isClosed);
});

test("a GET on a connection that was used before is closed, because the next answer could be another one's", async () => {
  const client = await heldBy(fakes[0], get("/one"));
  fakes[0].release();
  await client.answer();
  client.send(get("/two"));
  await until("the second request", () => fakes[0].requests.includes("GET /two HTTP/1.1"));
  fakes[0].health = "unavailable";
  await checkedUntil(() => client.isClosed);
  expect(client.received).toBe(fakes[0].address);
});

test("a connection without a request moves to a ready server", async () => {
  const clients = [1, 2, 3].map(() => new Client(""));
  await until("the connections", () => fakes.reduce((sum, fake) => sum + fake.connections, 0) === 3);
  fakes[0].health = "unavailable";
  await servers.check();
  for (const client of clients) client.send(get("/"));
  expect((await Promise.all(clients.map((client) => client.answer()))).includes(fakes[0].address)).toBe(
    false,
  );
});

test("when a server dies, a GET is repeated, but only once, and a POST is closed", async () => {
  const [client, writer] = [await heldBy(fakes[0], get("/deadly")), await heldBy(fakes[0], post)];
  for (const fake of fakes) fake.isHolding = true;
  const [writes, reads] = [count("POST"), count("GET /deadly")];
  fakes[0].refuse();
  fakes[0].cut();
  await until("the repetition", () => count("GET /deadly") > reads);
  const second = fakes[1].requests.at(-1)?.includes("/deadly") ? fakes[1] : fakes[2];
  await writer.closed();
  second.refuse();
  second.cut();
  await client.closed();
  expect([count("POST"), count("GET /deadly")]).toEqual([writes, reads + 1]);
});

test("a request of more than 16 KiB is not kept, so it is not repeated", async () => {
  const client = await heldBy(fakes[0], get(`/${"x".repeat(20_000)}`));
  const sent = count("GET /x");
  fakes[0].refuse();
  fakes[0].cut();
  await client.closed();
  expect(count("GET /x")).toBe(sent);
});

test("only one whole request without a body is repeated", () => {
  const head = "GET / HTTP/1.1\r\nHost: svc\r\n";
  expect([isRepeatable(""), isRepeatable(`${head}\r\n`)]).toEqual([true, true]);
  expect(isRepeatable(`${head.replace("GET", "HEAD")}\r\n`)).toBe(true);
  for (const other of [
    head,
    `${head}\r\nmore`,
    `${head}\r\n${post}`,
    `${head}\r\n${head}\r\n`,
    `${head}Content-Length: 0\r\n\r\n`,
    `${head}transfer-encoding : chunked\r\n\r\n`,
    `${head.replace("GET", "GETS")}\r\n`,
    post,
    "\x16\x03\x01",
  ])
    expect([other, isRepeatable(other)]).toEqual([other, false]);
});
