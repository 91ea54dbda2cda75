import { lstatSync, type Stats, unlinkSync } from "node:fs";
import { connect } from "node:net";
import { SvcError } from "../../platform/errors.ts";

const patienceMilliseconds = 2000;

/**
 * Makes `path` available for a socket: one left behind by a killed process is removed.
 * @throws SvcError when a server answers on it, or when it is not a socket
 */
export async function replaceStaleSocket(path: string): Promise<void> {
  let found: Stats;
  try {
    found = lstatSync(path);
  } catch {
    return;
  }
  if (!found.isSocket()) throw new SvcError("configuration", `--uds: ${path} exists and is not a socket`);
  if (await answers(path)) throw new SvcError("configuration", `--uds: a server runs on ${path}`);
  unlinkSync(path);
}

/** If connecting is not allowed or would block, assume that a server is running. */
async function answers(path: string): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect({ path }, () => resolve(true));
  socket.once("error", (error: NodeJS.ErrnoException) => resolve(error.code !== "ECONNREFUSED"));
  try {
    return (await promise) || (await isBusy(path));
  } finally {
    socket.destroy();
  }
}

/** Bun's sockets also report a full backlog as refused; its `fetch` can tell. */
async function isBusy(path: string): Promise<boolean> {
  try {
    const signal = AbortSignal.timeout(patienceMilliseconds);
    await fetch("http://localhost/", { unix: path, method: "HEAD", signal });
    return true;
  } catch (error) {
    return (error as { code?: unknown }).code !== "ECONNREFUSED";
  }
}
