import { randomInt } from "node:crypto";
import { createServer } from "node:net";

/**
 * Below the ports that systems use for outgoing connections, and for servers that listen on any port: from 32768 on Linux,
 * from 49152 elsewhere. A port of those may be taken before it is used.
 */
const choice = { from: 10_000, to: 32_767 };

/** A port of this machine that is free at the moment and is none of `others`, which are still to be used. */
export async function freePort(host = "127.0.0.1", others: readonly number[] = []): Promise<number> {
  for (let attempt = 1; ; attempt += 1) {
    // The system's own choice, if all of them are taken or reserved.
    const wanted = attempt > 20 ? 0 : randomInt(choice.from, choice.to + 1);
    try {
      const port = await listenOnce(host, wanted);
      if (!others.includes(port)) return port;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (wanted === 0 || (code !== "EADDRINUSE" && code !== "EACCES")) throw error;
    }
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
