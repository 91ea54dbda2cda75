import { lookup } from "node:dns/promises";
import { connect, createServer, type Server, type Socket } from "node:net";

/**
 * `bun forward.ts <address:port> <name:port> [/path]`: forwards each connection to one of the addresses that the name
 * currently has, in turn. If nobody listens there, it tries the next address, and retries all of them for a while.
 * It gives any number of servers one address, and lets a server reach the trial sign-in provider where browsers do: on
 * loopback. Nothing is read before a server accepts the connection, so a server that is down costs no request. A server
 * that exits loses connections that the system has accepted but the server has not: with a path, servers are checked
 * there for whether they are stopping, and skipped in time.
 */

const connectMilliseconds = 2000;
/** Covers the restart of a server that is the only one. */
const patienceMilliseconds = 5000;
const pauseMilliseconds = 100;
/** TCP keep-alive after this silence, so that a peer that vanished is dropped. */
const keepAliveMilliseconds = 30_000;
/** At least twice within the time for which a server reports that it is stopping. */
const checkMilliseconds = 2000;
const checkPatienceMilliseconds = 2000;

/** Enough for a burst on healthy servers. Beyond it, the servers are down, and clients are refused immediately. */
const mostWaiting = 4096;

interface Address {
  host: string;
  port: number;
}

/** @param most the number of connections that may wait for a server; further ones are closed */
export function forward(to: Address, most = mostWaiting): Server {
  let waiting = 0;
  return createServer({ allowHalfOpen: true }, async (client) => {
    client.on("error", () => client.destroy());
    if (waiting === most) {
      client.destroy();
      return;
    }
    waiting++;
    const upstream = await openPatiently(client, to);
    waiting--;
    if (!upstream || client.destroyed) {
      upstream?.destroy();
      client.destroy();
      return;
    }
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      one.setKeepAlive(true, keepAliveMilliseconds);
      one.on("error", () => other.destroy());
      one.on("close", () => other.destroy());
      one.pipe(other);
    }
  });
}

let turn = 0;
/** The servers that are known to be stopping. */
const leaving = new Set<string>();

/** Undefined if it takes too long, or the client has disconnected. */
async function openPatiently(client: Socket, { host, port }: Address): Promise<Socket | undefined> {
  const deadline = performance.now() + patienceMilliseconds;
  for (;;) {
    const socket = await open(host, port);
    if (socket || client.destroyed || performance.now() > deadline) return socket;
    await Bun.sleep(pauseMilliseconds);
  }
}

/** Undefined if no server accepts it. */
async function open(name: string, port: number): Promise<Socket | undefined> {
  for (const address of inOrder(await addressesOf(name), leaving, turn++)) {
    const socket = await attempt(address, port);
    if (socket) return socket;
  }
  return undefined;
}

async function addressesOf(name: string): Promise<string[]> {
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

/**
 * Checks at `path` whether each address is stopping, as `/healthcheck` reports (docs/release.md), and keeps those that are
 * in `leaving`. A server that does not answer is not included: connecting to it shows whether it is up.
 */
export async function updateLeaving(
  addresses: readonly string[],
  { port, path }: { port: number; path: string },
  leaving: Set<string>,
): Promise<void> {
  const check = async (address: string) => {
    const host = address.includes(":") ? `[${address}]` : address;
    const status = await statusOf(`http://${host}:${port}${path}`);
    if (status === "leaving") leaving.add(address);
    else if (status !== undefined) leaving.delete(address);
  };
  for (const address of leaving) if (!addresses.includes(address)) leaving.delete(address);
  await Promise.all(addresses.map(check));
}

/** Servers that stay come first, in turn; stopping ones are used only if there are no others. */
export function inOrder(addresses: readonly string[], leaving: ReadonlySet<string>, turn: number): string[] {
  const rotated = (all: string[]) => all.map((_, n) => all[(turn + n) % all.length]!);
  const stay = addresses.filter((one) => !leaving.has(one));
  return [...rotated(stay), ...rotated(addresses.filter((one) => leaving.has(one)))];
}

async function statusOf(url: string): Promise<unknown> {
  try {
    const signal = AbortSignal.timeout(checkPatienceMilliseconds);
    // A new connection, because a reused one would be cut when the server exits.
    const response = await fetch(url, { signal, redirect: "manual", keepalive: false, proxy: "" });
    return ((await response.json()) as { status?: unknown }).status;
  } catch {
    return undefined;
  }
}

function parse(text: string): Address | undefined {
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
  const listener = forward(to);
  listener.on("error", (error) => {
    console.error(`forward: ${error.message}`);
    process.exit(1);
  });
  listener.listen(from.port, from.host);
  while (path !== undefined) {
    await updateLeaving(await addressesOf(to.host), { port: to.port, path }, leaving);
    await Bun.sleep(checkMilliseconds);
  }
}
