import { connect, createServer, type Socket } from "node:net";
import { listen } from "../listen.ts";

/** A proxy to PostgreSQL that can break connections. */
export interface SpoiltWay {
  url: string;
  /** Stops all traffic on existing connections without closing them. */
  silence(): void;
  /** Closes existing connections. */
  cut(): void;
  /** Resets existing connections, as a host does that has just started. */
  reset(): void;
  /** From now on, resets a connection when its client sends this text. */
  resetAt(text: string): void;
  close(): void;
  [Symbol.dispose](): void;
}

/** Starts a proxy to PostgreSQL. New connections always work. */
export async function openSpoiltWay(to: string): Promise<SpoiltWay> {
  const real = new URL(to);
  const sockets = new Set<Socket>();
  let silent = new Set<Socket>();
  let fatal: string | undefined;
  const proxy = createServer((near) => {
    const far = connect(Number(real.port), real.hostname);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      from.on("data", (data) => {
        if (fatal !== undefined && from === near && data.includes(fatal)) near.resetAndDestroy();
        else if (!silent.has(near)) to.write(data);
      });
      from.on("error", () => {});
      from.on("close", () => to.destroy());
    }
    sockets.add(near);
    near.on("close", () => sockets.delete(near));
  });
  const url = new URL(real);
  url.port = String(await listen(proxy));
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  const close = () => {
    cut();
    proxy.close();
  };
  return {
    url: url.href,
    silence: () => {
      silent = new Set(sockets);
    },
    cut,
    reset: () => {
      for (const socket of sockets) socket.resetAndDestroy();
    },
    resetAt: (text) => {
      fatal = text;
    },
    close,
    [Symbol.dispose]: close,
  };
}
