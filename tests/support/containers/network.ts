import { createServer } from "node:net";

/** Below the ports that Linux takes for what connects to somewhere: they are free again whenever a container starts anew. */
const [firstPort, portCount] = [20_000, 12_000];
/** RFC 2544: for tests of networks, so it is nobody's. */
const testNetworks = 2 ** 13;

/** For a container to be published on, some time later. */
export async function publishedPort(): Promise<number> {
  for (;;) {
    const port = firstPort + Math.floor(Math.random() * portCount);
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const socket = createServer().once("error", () => resolve(false));
    socket.listen(port, "127.0.0.1", () => socket.close(() => resolve(true)));
    if (await promise) return port;
  }
}

/** Sixteen addresses that hardly another project on this machine has. */
export function frontSubnet(): string {
  const first = Math.floor(Math.random() * testNetworks) * 16;
  return `198.${18 + (first >> 16)}.${(first >> 8) & 255}.${first & 255}/28`;
}
