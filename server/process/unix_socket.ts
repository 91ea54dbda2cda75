import { lstatSync, type Stats, unlinkSync } from "node:fs";
import { connect } from "node:net";
import { SvcError } from "../../platform/errors.ts";

const patienceMilliseconds = 2000;

/**
 * Makes way for a socket at `path`: one that a process left behind when it was killed is removed.
 * @throws SvcError when a server answers on it, or when something else lies there
 */
export async function takeOver(path: string): Promise<void> {
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

/** Whoever may not connect, or has to wait for it, cannot tell: that counts as somebody who is there. */
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

/** Bun's sockets call it refused, too, when there are too many that wait to be accepted; its `fetch` knows better. */
async function isBusy(path: string): Promise<boolean> {
  try {
    const signal = AbortSignal.timeout(patienceMilliseconds);
    await fetch("http://localhost/", { unix: path, method: "HEAD", signal });
    return true;
  } catch (error) {
    return (error as { code?: unknown }).code !== "ECONNREFUSED";
  }
}
