import { lookup } from "node:dns/promises";
import { connect, createServer, type Socket } from "node:net";

/**
 * `bun forward.ts <address:port> <name:port>`: passes each connection on to one of the addresses that the name has at that
 * moment, in turn, and to the next one where nobody listens; if that is so everywhere, it asks again for a while. It is
 * what makes one address of any number of servers, whichever of them are there, and what lets a server find the trial
 * sign-in provider where browsers find it: on loopback. Nothing is read before there is somebody to pass it on to, so a
 * server that does not answer costs no request.
 */

const connectMilliseconds = 2000;
/** For a server that is the only one, and starts anew. */
const patienceMilliseconds = 5000;
const pauseMilliseconds = 100;

const [from, to] = process.argv.slice(2).map(parse);
if (!from || !to) {
  console.error("usage: bun forward.ts <address:port> <name:port>");
  process.exit(2);
}

let turn = 0;

const listener = createServer({ allowHalfOpen: true }, async (client) => {
  client.on("error", () => client.destroy());
  const upstream = await patiently(client, () => open(to.host, to.port));
  if (!upstream || client.destroyed) {
    upstream?.destroy();
    client.destroy();
    return;
  }
  for (const [one, other] of [
    [client, upstream],
    [upstream, client],
  ] as const) {
    one.on("error", () => other.destroy());
    one.on("close", () => other.destroy());
    one.pipe(other);
  }
});
listener.on("error", (error) => {
  console.error(`forward: ${error.message}`);
  process.exit(1);
});
listener.listen(from.port, from.host);

// The first process of a container gets no signal that it does not ask for.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => process.exit(0));

function parse(text: string): { host: string; port: number } | undefined {
  const [, host, port] = text.match(/^(.+):(\d+)$/) ?? [];
  return host && port ? { host, port: Number(port) } : undefined;
}

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
  const addresses = await lookup(name, { all: true }).catch(() => []);
  const first = turn++;
  for (let n = 0; n < addresses.length; n++) {
    const socket = await attempt(addresses[(first + n) % addresses.length]!.address, port);
    if (socket) return socket;
  }
  return undefined;
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
