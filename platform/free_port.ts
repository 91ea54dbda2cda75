import { createServer } from "node:net";

/** A port of this machine that is free at the moment and is none of `others`, which are still to be used. */
export async function freePort(host = "127.0.0.1", others: readonly number[] = []): Promise<number> {
  for (;;) {
    const port = await listenOnce(host, 0);
    if (!others.includes(port)) return port;
  }
}

/** Listens on a port, or on any free one for 0, and stops. @throws the error of the system */
export async function listenOnce(host: string, port: number): Promise<number> {
  const server = createServer();
  // IPv6 addresses are often written in brackets.
  const address = host.replace(/^\[(.*)\]$/, "$1");
  await new Promise<void>((settle, reject) => server.once("error", reject).listen(port, address, settle));
  const { port: bound } = server.address() as { port: number };
  await new Promise((settle) => server.close(settle));
  return bound;
}
