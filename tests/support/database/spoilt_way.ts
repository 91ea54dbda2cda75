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
  /** From now on, resets new connections at once. */
  refuse(all: boolean): void;
  /** From now on, delays everything by this many milliseconds, in both directions. */
  delay(milliseconds: number): void;
  /** From now on, resets a connection when its client sends this text; undefined ends this. */
  resetAt(text: string | undefined): void;
  /** From now on, ends a connection together with the answer that has this text, like PostgreSQL without its postmaster. */
  endWith(text: string): void;
  /** How often a client has sent something after an answer, and so waited for another one. */
  roundTrips(): number;
  close(): void;
  [Symbol.dispose](): void;
}

/** An ErrorResponse (https://www.postgresql.org/docs/current/protocol-message-formats.html). */
const unexpectedExit = (() => {
  const text = "terminating connection due to unexpected postmaster exit";
  const fields = Buffer.from(`SFATAL\0VFATAL\0C57P01\0M${text}\0\0`);
  const head = Buffer.from("E0000");
  head.writeUInt32BE(fields.length + 4, 1);
  return Buffer.concat([head, fields]);
})();

/** Starts a proxy to PostgreSQL. New connections work, unless they are refused. */
export async function openSpoiltWay(to: string): Promise<SpoiltWay> {
  const real = new URL(to);
  const sockets = new Set<Socket>();
  let silent = new Set<Socket>();
  let fatal: string | undefined;
  let last: string | undefined;
  let refusing = false;
  let late = 0;
  let trips = 0;
  const afterDelay = (act: () => void) => (late > 0 ? void setTimeout(act, late) : act());
  const proxy = createServer((near) => {
    if (refusing) return void near.resetAndDestroy();
    const far = connect(Number(real.port), real.hostname);
    let isAnswered = true;
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      from.on("data", (data) => {
        if (from === near && isAnswered) trips += 1;
        isAnswered = from === far;
        if (fatal !== undefined && from === near && data.includes(fatal)) near.resetAndDestroy();
        else if (last !== undefined && from === far && data.includes(last)) {
          last = undefined;
          near.end(Buffer.concat([Buffer.from(data), unexpectedExit]));
        } else if (!silent.has(near)) afterDelay(() => to.write(data));
      });
      from.on("error", () => {});
      from.on("close", () => afterDelay(() => to.destroy()));
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
    refuse: (all) => {
      refusing = all;
    },
    delay: (milliseconds) => {
      late = milliseconds;
    },
    resetAt: (text) => {
      fatal = text;
    },
    endWith: (text) => {
      last = text;
    },
    roundTrips: () => trips,
    close,
    [Symbol.dispose]: close,
  };
}
