import { lookup } from "node:dns/promises";
import { connect, createServer, type Server, type Socket } from "node:net";
import { askWhoLeaves, inOrder } from "./leaving.ts";

/**
 * `bun forward.ts <address:port> <name:port> [/path]`: passes each connection on to one of the addresses that the name has
 * at that moment, in turn, and to the next one where nobody listens; if that is so everywhere, it asks again for a while.
 * It is what makes one address of any number of servers, whichever of them are there, and what lets a server find the trial
 * sign-in provider where browsers find it: on loopback. Nothing is read before there is somebody to pass it on to, so a
 * server that does not answer costs no request. One that goes takes with it what the system has taken for it and it has
 * not seen yet: with a path, who is about to go is asked there, and passed over in time.
 */

const connectMilliseconds = 2000;
/** For a server that is the only one, and starts anew. */
const patienceMilliseconds = 5000;
const pauseMilliseconds = 100;
/** Whoever is silent so long is asked whether they are still there: one who has gone without a word is let go. */
const keepAliveMilliseconds = 30_000;
/** At least twice within the time for which a server says that it is about to go. */
const askMilliseconds = 2000;

/** A rush on servers that are all there is let in; beyond it, they are gone, and who asks is told so at once. */
const mostWaiting = 4096;

export interface Address {
  host: string;
  port: number;
}

/** @param most how many connections may wait for somebody to be passed on to; one more is closed */
export function forward(to: Address, most = mostWaiting): Server {
  let waiting = 0;
  return createServer({ allowHalfOpen: true }, async (client) => {
    client.on("error", () => client.destroy());
    if (waiting === most) {
      client.destroy();
      return;
    }
    waiting++;
    const upstream = await patiently(client, () => open(to.host, to.port));
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
/** Who is about to go, as far as is known. */
const leaving = new Set<string>();

/** Undefined when it takes too long, or the client has gone meanwhile. */
async function patiently(client: Socket, attempt: () => Promise<Socket | undefined>) {
  const deadline = performance.now() + patienceMilliseconds;
  for (;;) {
    const socket = await attempt();
    if (socket || client.destroyed || performance.now() > deadline) return socket;
    await Bun.sleep(pauseMilliseconds);
  }
}

/** Undefined when nobody takes it. */
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
  const listener = forward(to);
  listener.on("error", (error) => {
    console.error(`forward: ${error.message}`);
    process.exit(1);
  });
  listener.listen(from.port, from.host);
  // The first process of a container gets no signal that it does not ask for.
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => process.exit(0));
  while (path !== undefined) {
    await askWhoLeaves(await addressesOf(to.host), { port: to.port, path }, leaving);
    await Bun.sleep(askMilliseconds);
  }
}
