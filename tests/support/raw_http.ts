import { connect } from "node:net";
import { within } from "./e2e_until.ts";

/**
 * Sends bytes as they stand, so that nothing puts them in order before.
 * @param quiet milliseconds without a word after which we hang up; otherwise the server does
 * @returns all that came back until then, a character a byte
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
  // A server that has heard enough may reset the connection.
  socket.on("error", () => {}).on("close", () => resolve(answer));
  try {
    return await within("the end of the connection", promise, 60);
  } finally {
    clearTimeout(timer);
    socket.destroy();
  }
}

/** The status of each final answer (RFC 9110, 15) in what came back; a body before it may end anywhere in a line. */
export function statusesOf(answer: string): number[] {
  return [...answer.matchAll(/HTTP\/1\.1 ([2-5]\d\d) [A-Z]/g)].map(([, status]) => Number(status));
}
