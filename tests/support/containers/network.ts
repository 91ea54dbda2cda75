import { createServer } from "node:net";

/** Below Linux's ephemeral ports, so that they are free whenever a container restarts. */
const [firstPort, portCount] = [20_000, 12_000];
/** RFC 2544: reserved for network tests. */
const testNetworks = 2 ** 13;

/** A port for a container to publish later. */
export async function publishedPort(): Promise<number> {
  for (;;) {
    const port = firstPort + Math.floor(Math.random() * portCount);
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const socket = createServer().once("error", () => resolve(false));
    socket.listen(port, "127.0.0.1", () => socket.close(() => resolve(true)));
    if (await promise) return port;
  }
}

/** Sixteen addresses that other projects on this machine are unlikely to use. */
export function frontSubnet(): string {
  const first = Math.floor(Math.random() * testNetworks) * 16;
  return `198.${18 + (first >> 16)}.${(first >> 8) & 255}.${first & 255}/28`;
}
