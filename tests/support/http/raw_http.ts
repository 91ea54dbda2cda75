import { connect } from "node:net";
import { within } from "../process/until.ts";

/**
 * Sends bytes unchanged, without an HTTP client that would correct them.
 * @param quiet disconnects after this many milliseconds without data; otherwise waits for the server to disconnect
 * @returns everything received until then, one character for each byte
 */
export async function exchange(port: number, bytes: string | Uint8Array, quiet?: number): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  let answer = "";
  let timer: Timer | undefined;
  const heard = () => {
    clearTimeout(timer);
    if (quiet !== undefined) timer = setTimeout(() => socket.destroy(), quiet);
  };
  const socket = connect({ port, host: "127.0.0.1" }, () => {
    socket.write(typeof bytes === "string" ? Buffer.from(bytes, "latin1") : bytes, heard);
  });
  socket.on("data", (chunk) => {
    answer += chunk.toString("latin1");
    heard();
  });
  // The server may reset the connection before it has read everything.
  socket.on("error", () => {}).on("close", () => resolve(answer));
  try {
    return await within("the end of the connection", promise, 60);
  } finally {
    clearTimeout(timer);
    socket.destroy();
  }
}

/**
 * Sends pieces in separate packets, `pause` milliseconds apart.
 * @returns everything received until the server disconnected, or was quiet for a second after the last piece
 */
export async function exchangePieces(port: number, pieces: readonly string[], pause = 100): Promise<string> {
  let answer = "";
  const socket = connect({ port, host: "127.0.0.1", noDelay: true });
  const ended = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  socket.on("data", (chunk) => {
    answer += chunk.toString("latin1");
  });
  socket.on("error", () => {});
  for (const piece of pieces) {
    socket.write(Buffer.from(piece, "latin1"));
    await Promise.race([ended, Bun.sleep(pause)]);
  }
  await Promise.race([ended, Bun.sleep(1000)]);
  socket.destroy();
  return answer;
}

/** The status of each final response (RFC 9110, 15) in the data. A body before it may end anywhere in a line. */
export function statusesOf(answer: string): number[] {
  return [...answer.matchAll(/HTTP\/1\.1 ([2-5]\d\d) [A-Z]/g)].map(([, status]) => Number(status));
}
