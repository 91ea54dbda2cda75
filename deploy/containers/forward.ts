import { lookup } from "node:dns/promises";
import { connect, createServer, type Server, type Socket } from "node:net";

/**
 * `bun forward.ts <address:port> <name:port> [/path]`: forwards each connection to one of the addresses that the name
 * currently has, in turn. It gives any number of servers one address, and lets a server reach the trial sign-in provider
 * where browsers do: on loopback.
 *
 * With a path, it checks there whether each server is ready, and uses the others while one is not; if none is ready, it
 * uses all. There is no time limit for an answer, because polls and streams stay open on purpose. Instead, the connections
 * of a server that no longer answers its check are closed, however long the requests on them may take.
 *
 * If a server accepts no connection, the next one is tried. A GET or HEAD that has been sent is repeated once, on another
 * server, if the first one fails or is not ready any more, and has answered nothing on this connection. Nothing else is
 * sent twice.
 *
 * Why not HAProxy: its checks tell only up from down. With 2.6 and the check above, a server that freezes held a request until
 * `timeout server`, which must exceed the longest poll. With `on-marked-down shutdown-sessions`, that request got 502 within
 * 3 s, but so did one of a server that was stopping and would have answered it.
 */

const connectMilliseconds = 2000;
/** Covers the restart of a server that is the only one. */
const patienceMilliseconds = 5000;
const pauseMilliseconds = 100;
/** TCP keep-alive after this silence, so that a peer that vanished is dropped. */
const keepAliveMilliseconds = 30_000;
/**
 * A broken server gets no further requests after the sum of the two: docs/scale.md. The first is at most half of the time
 * for which a server reports that it is stopping; the second is longer than a server waits for its database.
 */
const checkMilliseconds = 2000;
const checkPatienceMilliseconds = 4000;
/** After so many checks without an answer, a server's connections are closed. One may be lost to a busy machine. */
const mostSilentChecks = 2;

/** Enough for a burst on healthy servers. Beyond it, the servers are down, and clients are refused immediately. */
const mostWaiting = 4096;
/** A longer request is not repeated: it is as much as a server accepts as headers. */
const mostRepeatedBytes = 16 * 1024;

/**
 * The result of a check. A stopping server still serves, and finishes its requests after it has stopped listening. A silent
 * one is frozen or cut off.
 */
type Result = "ready" | "stopping" | "not listening" | "not ready" | "silent";

/** @param most the number of connections that may wait for a server; further ones are closed */
export function forward(servers: Servers, most = mostWaiting): Server {
  let waiting = 0;
  return createServer({ allowHalfOpen: true }, async (client) => {
    client.on("error", () => client.destroy());
    if (waiting === most) {
      client.destroy();
      return;
    }
    waiting++;
    await new Link(client, servers).open();
    waiting--;
  });
}

/** A client's connection and the one to its server. */
class Link {
  readonly #client: Socket;
  readonly #servers: Servers;
  #upstream: Socket | undefined;
  #hasAnswered = false;
  #hasMoved = false;
  /** What the client has sent since the server last sent anything; undefined if it is too long to be repeated. */
  #request: Buffer[] | undefined = [];
  #requestBytes = 0;

  constructor(client: Socket, servers: Servers) {
    this.#client = client;
    this.#servers = servers;
  }

  /** Connects to a server and forwards in both directions, beginning with what the client has sent so far. */
  async open(): Promise<void> {
    const client = this.#client;
    const upstream = await openPatiently(client, this.#servers);
    if (!upstream || client.destroyed) {
      upstream?.destroy();
      client.destroy();
      return;
    }
    this.#upstream = upstream;
    const remove = this.#servers.add(upstream.remoteAddress!, this);
    for (const socket of [client, upstream]) socket.setKeepAlive(true, keepAliveMilliseconds);
    upstream.on("error", () => upstream.destroy());
    upstream.on("data", () => {
      this.#hasAnswered = true;
      this.#request = [];
      this.#requestBytes = 0;
    });
    upstream.once("end", () => this.#lose(upstream, () => client.end()));
    upstream.once("close", () => {
      remove();
      this.#lose(upstream, () => client.destroy());
    });
    if (this.#hasMoved) for (const chunk of this.#request ?? []) upstream.write(chunk);
    else {
      client.on("data", (chunk: Buffer) => this.#keep(chunk));
      client.once("close", () => this.#upstream?.destroy());
    }
    client.pipe(upstream);
    upstream.pipe(client, { end: false });
  }

  /** The server is not ready, and another one is. If it is silent, even a request that must not be repeated is given up. */
  leave(isSilent: boolean): void {
    const client = this.#client;
    if (this.#canMove()) void this.#move();
    // An idle connection, a stream, or a GET that the client repeats: it has used this connection before.
    else if (isSilent || (this.#isRepeatable() && client.writableLength === 0)) client.destroy();
  }

  #keep(chunk: Buffer): void {
    this.#requestBytes += chunk.length;
    if (this.#requestBytes > mostRepeatedBytes) this.#request = undefined;
    else this.#request?.push(chunk);
  }

  #lose(upstream: Socket, end: () => void): void {
    if (upstream !== this.#upstream) return;
    if (this.#request?.length !== 0 && this.#canMove()) void this.#move();
    else end();
  }

  /** Once an answer has begun, or the client has sent its last byte, another server would send the wrong one, or none. */
  #canMove(): boolean {
    const { readableEnded, destroyed } = this.#client;
    return !this.#hasMoved && !this.#hasAnswered && !readableEnded && !destroyed && this.#isRepeatable();
  }

  #isRepeatable(): boolean {
    return this.#request !== undefined && isRepeatable(Buffer.concat(this.#request).toString("latin1"));
  }

  async #move(): Promise<void> {
    const upstream = this.#upstream!;
    this.#hasMoved = true;
    this.#upstream = undefined;
    this.#client.unpipe(upstream);
    upstream.unpipe(this.#client);
    upstream.destroy();
    await this.open();
  }
}

/** Whether the bytes are nothing, or one whole request that has no effect and no body. */
export function isRepeatable(bytes: string): boolean {
  if (bytes === "") return true;
  const isOne = /^(GET|HEAD) /.test(bytes) && bytes.indexOf("\r\n\r\n") === bytes.length - 4;
  return isOne && !/\n(content-length|transfer-encoding)[ \t]*:/i.test(bytes);
}

/** The addresses that a name has, the latest check of each, and the connections to it. */
export class Servers {
  #turn = 0;
  readonly #checking = new Set<string>();
  /** The latest results of each address, and how many in a row were `silent`. */
  readonly #results = new Map<string, { result: Result; silences: number }>();
  readonly #links = new Map<string, Set<Link>>();

  readonly #addresses: () => Promise<string[]>;

  /** @param path of the check; without one, there are no checks */
  constructor(
    readonly port: number,
    addresses: () => Promise<string[]>,
    private readonly path?: string,
    private readonly patience = checkPatienceMilliseconds,
  ) {
    this.#addresses = addresses;
  }

  /** The addresses in the order in which to try them: those of the best kind that exists take turns. */
  async inOrder(): Promise<string[]> {
    const all = await this.#addresses();
    const turn = this.#turn++;
    const rotated = all.map((_, n) => all[(turn + n) % all.length]!);
    return rotated.sort((one, other) => this.#rank(one) - this.#rank(other));
  }

  /** @returns a function that removes it */
  add(address: string, link: Link): () => void {
    const links = this.#links.get(address) ?? new Set();
    this.#links.set(address, links.add(link));
    return () => {
      links.delete(link);
      if (links.size === 0 && this.#links.get(address) === links) this.#links.delete(address);
    };
  }

  /** Starts a check of each address. One that takes long delays no other. */
  async check(): Promise<void> {
    const { path } = this;
    if (path === undefined) return;
    // Those that the name has lost may still have connections.
    const all = new Set([...(await this.#addresses()), ...this.#links.keys()]);
    for (const address of this.#results.keys()) if (!all.has(address)) this.#results.delete(address);
    await Promise.all([...all].map((address) => this.#check(address, path)));
  }

  async #check(address: string, path: string): Promise<void> {
    if (this.#checking.has(address)) return;
    this.#checking.add(address);
    const host = address.includes(":") ? `[${address}]` : address;
    const result = await resultOf(`http://${host}:${this.port}${path}`, this.patience);
    this.#checking.delete(address);
    const before = this.#results.get(address);
    const silences = result === "silent" ? (before?.silences ?? 0) + 1 : 0;
    this.#results.set(address, { result, silences });
    if (result !== (before?.result ?? "ready")) console.error(`forward: ${address} is ${result}`);
    if (result !== "not ready" && result !== "silent") return;
    if (![...this.#results.values()].some((one) => one.result === "ready")) return;
    for (const link of this.#links.get(address) ?? []) link.leave(silences >= mostSilentChecks);
  }

  #rank(address: string): number {
    const result = this.#results.get(address)?.result;
    if (result === "ready") return 0;
    return result === undefined || result === "stopping" ? 1 : 2;
  }
}

async function resultOf(url: string, patience: number): Promise<Result> {
  try {
    const signal = AbortSignal.timeout(patience);
    // A new connection, because a reused one would be cut when the server exits.
    const response = await fetch(url, { signal, redirect: "manual", keepalive: false, proxy: "" });
    const text = await response.text();
    if (response.status === 200) return "ready";
    return /"status":\s*"leaving"/.test(text) ? "stopping" : "not ready";
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ECONNREFUSED" ? "not listening" : "silent";
  }
}

/** Undefined if it takes too long, or the client has disconnected. */
async function openPatiently(client: Socket, servers: Servers): Promise<Socket | undefined> {
  const deadline = performance.now() + patienceMilliseconds;
  for (;;) {
    const socket = await open(servers);
    if (socket || client.destroyed || performance.now() > deadline) return socket;
    await Bun.sleep(pauseMilliseconds);
  }
}

/** Undefined if no server accepts it. */
async function open(servers: Servers): Promise<Socket | undefined> {
  for (const address of await servers.inOrder()) {
    const socket = await attempt(address, servers.port);
    if (socket) return socket;
  }
  return undefined;
}

export async function addressesOf(name: string): Promise<string[]> {
  const all = await lookup(name, { all: true }).catch(() => []);
  return all.map(({ address }) => address);
}

async function attempt(host: string, port: number): Promise<Socket | undefined> {
  const { promise, resolve } = Promise.withResolvers<Socket | undefined>();
  const socket = connect({ host, port, allowHalfOpen: true });
  socket.once("connect", () => resolve(socket));
  socket.once("error", () => resolve(undefined));
  const timer = setTimeout(() => resolve(undefined), connectMilliseconds);
  const opened = await promise;
  clearTimeout(timer);
  if (!opened) socket.destroy();
  return opened;
}

function parse(text: string): { host: string; port: number } | undefined {
  const [, host, port] = text.match(/^(.+):(\d+)$/) ?? [];
  return host && port ? { host, port: Number(port) } : undefined;
}

if (import.meta.main) {
  const [, , near = "", far = "", path] = process.argv;
  const [from, to] = [parse(near), parse(far)];
  if (!from || !to) {
    console.error("usage: bun forward.ts <address:port> <name:port> [/path]");
    process.exit(2);
  }
  // The first process of a container receives only signals that it handles, also before it listens.
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => process.exit(0));
  const servers = new Servers(to.port, () => addressesOf(to.host), path);
  const listener = forward(servers);
  listener.on("error", (error) => {
    console.error(`forward: ${error.message}`);
    process.exit(1);
  });
  listener.listen(from.port, from.host);
  while (path !== undefined) {
    void servers.check();
    await Bun.sleep(checkMilliseconds);
  }
}
